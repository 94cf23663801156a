"""Follows the transcripts on a host: what is there first, and then what is added, for as long as it runs.

A transcript is itself the durable queue: nothing is marked as brought before the ledger has said so, and what was
interrupted is read again. Files that shrink, are replaced, moved or written anew need no case of their own: a mark
that no longer fits is dropped, the file is read from its beginning, and the ledger stores each thing once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from ledger.errors import LedgerError
from ledger.transcripts.delivering import Delivery
from ledger.transcripts.finding import Finder, Found, candidates
from ledger.transcripts.marks import Marks
from ledger.transcripts.model import NoSession, Report

SAVE_EVERY = 50  # transcripts

_FILE_ONLY = frozenset({"unknown_session", "session_elsewhere"})  # codes that another file need not meet


class Swept:
    """What a follower has come by so far."""

    def __init__(self) -> None:
        self.files = 0
        self.failed_files = 0
        self.unknown_files = 0


class Follower:
    """Brings what lies below `roots` by `delivery`, and again what has changed.

    `say` is told a line for each file that failed, and with `names_unknown` for each that is no transcript."""

    def __init__(
        self,
        roots: Callable[[], Iterable[Path]],
        finder: Finder,
        delivery: Delivery,
        marks: Marks,
        report: Report,
        *,
        names_unknown: bool = False,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.swept = Swept()
        self._roots = roots
        self._finder = finder
        self._delivery = delivery
        self._marks = marks
        self._report = report
        self._names_unknown = names_unknown
        self._say = say
        self._known: dict[str, set[tuple[str, int]]] = {}
        self._given_up: dict[str, str] = {}  # signature by key: not tried again before it changes
        self._files: set[str] = set()
        self._remembers = True

    def changed(self) -> list[Found]:
        """What lies there that is new, or has changed since it was brought."""
        changed = [found for root in self._roots() for path in candidates(root) for found in self._changed_at(path)]
        return list({found.key: found for found in changed}.values())

    def bring(
        self, changed: Iterable[Found], *, growing: bool, progress: Callable[[int], None] = lambda done: None
    ) -> None:
        """Brings these, sessions before their subagents; `growing` files may end in half a line. `progress` is told
        how many bytes have been read. Raises LedgerError where the ledger cannot be reached or lets nobody in: then
        what is left is still changed."""
        try:
            subagents = self._bring_all(changed, False, growing, progress)
            self._bring_all(subagents, True, growing, progress)
        finally:
            self._save()

    def _changed_at(self, path: Path) -> list[Found]:
        try:
            found = self._finder.found_at(path)
        except FileNotFoundError:  # gone since it was listed
            return []
        except OSError as failure:
            self._failed(str(path), str(path), failure.strerror or str(failure))
            return []
        if found is None:
            if self._names_unknown and str(path) not in self._given_up:
                self._given_up[str(path)] = ""
                self.swept.unknown_files += 1
                self._say(f"skipped: {path}: no transcript of an agent that is looked for")
            return []
        return [
            one
            for one in found
            if not self._marks.is_brought(one.key, one.signature) and self._given_up.get(one.key) != one.signature
        ]

    def _bring_all(
        self, changed: Iterable[Found], children: bool, growing: bool, progress: Callable[[int], None]
    ) -> list[Found]:
        """Brings the sessions, or the subagents; gives those that were left out."""
        left: list[Found] = []
        done = 0
        for number, found in enumerate(changed, start=1):
            if not self._bring(found, children, growing, partial(_from, progress, done)):
                left.append(found)
                continue
            done += found.size
            progress(done)
            if number % SAVE_EVERY == 0:
                self._save()
        return left

    def _bring(self, found: Found, children: bool, growing: bool, progress: Callable[[int], None]) -> bool:
        try:
            start, histories = self._marks.start(found.key, found.path)
            delivering = self._delivery.deliver(
                found,
                self._report,
                start=start,
                growing=growing,
                children=children,
                histories=histories,
                known=self._known.setdefault(found.key, set()) if growing else None,
                progress=progress,
            )
            if delivering is None:
                return False
            if delivering.mark is not None:
                self._known.pop(found.key, None)
            self._marks.set(found.key, found.path, found.signature, delivering.mark, delivering.histories)
            self._count(found.key)
        except NoSession as nothing:
            self._given_up[found.key] = found.signature
            if self._names_unknown:
                self.swept.unknown_files += 1
                self._say(f"skipped: {nothing}")
        except FileNotFoundError:
            pass
        except OSError as failure:
            self._failed(found.key, found.signature, failure.strerror or str(failure))
        except LedgerError as error:
            if error.code not in _FILE_ONLY and not _is_about_the_request(error):
                raise
            self._failed(found.key, found.signature, error.detail)
        return True

    def _save(self) -> None:
        """Marks are a cache: where they cannot be kept, more is read again, and that is all."""
        try:
            self._marks.save()
        except OSError as failure:
            if self._remembers:
                self._say(f"how far it has come cannot be remembered: {failure}")
            self._remembers = False

    def _count(self, key: str) -> None:
        self._files.add(key)
        self.swept.files = len(self._files)

    def _failed(self, key: str, signature: str, why: str) -> None:
        if self._given_up.get(key) != signature:
            self._given_up[key] = signature
            self.swept.failed_files += 1
            self._say(f"failed: {key}: {why}")


def _from(progress: Callable[[int], None], done: int, offset: int) -> None:
    progress(done + offset)


def _is_about_the_request(error: LedgerError) -> bool:
    """True where the ledger refused what was sent, and not who sent it: another file may fare better."""
    status = getattr(error, "status", None)
    return isinstance(status, int) and 400 <= status < 500 and status not in (401, 403, 408, 429)
