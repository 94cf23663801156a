"""One look at all sources, which changes nothing: what is new, what of it is clean, and what a judge should see."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol

import msgspec

from ledger.daemons.agent.processes import Stopping
from ledger.daemons.sweep.commands import Stopped
from ledger.daemons.sweep.config import ScanKeys
from ledger.daemons.sweep.journal import Fact, plain_key
from ledger.daemons.sweep.model import (
    Candidate,
    Candidates,
    Found,
    SessionText,
    Source,
    SourceFailed,
    Unreadable,
)
from ledger.daemons.sweep.prefilter.selecting import Budget
from ledger.errors import LedgerError
from projections import sweep as kinds
from projections.sweep import name_of

WHY_CHARS_MAX = 300


class Prefilter(Protocol):
    def candidates(self, session: SessionText) -> Candidates:
        """Raises SessionUnreadable."""
        ...


class Scanned(msgspec.Struct):
    """What a look came to: lists of sessions, each in one of them. `chosen` are those to be judged, with no more
    candidates than there is room for; `failed` says why a source could not be looked at. `initialised` are sources
    that were looked at for the first time."""

    baselined: list[Found] = []
    clean: list[Found] = []
    excluded: list[tuple[Found, str]] = []
    chosen: list[Candidates] = []
    deferred: list[Candidates] = []
    unreadable: list[Unreadable] = []
    initialised: list[str] = []
    failed: dict[str, str] = {}

    @property
    def candidates(self) -> list[Candidate]:
        return [candidate for session in self.chosen for candidate in session.found]

    @property
    def counts(self) -> dict[str, int]:
        """For the journal: sessions of each kind, and `candidates`."""
        return {
            "sessions_baselined": len(self.baselined),
            "sessions_clean": len(self.clean),
            "sessions_excluded": len(self.excluded),
            "sessions_judged": len(self.chosen),
            "sessions_deferred": len(self.deferred),
            "sessions_unreadable": len(self.unreadable),
            "sources_failed": len(self.failed),
            "candidates": len(self.candidates),
        }

    def facts(self, first_run: str) -> list[Fact]:
        """What is recorded of it. The sessions that were chosen are recorded once they are judged."""
        return [
            *((kinds.SESSION_BASELINED, _named(one)) for one in self.baselined),
            *((kinds.SESSION_CLEAN, _named(one)) for one in self.clean),
            *((kinds.SESSION_EXCLUDED, {**_named(one), "pattern": pattern}) for one, pattern in self.excluded),
            *(
                (kinds.SESSION_DEFERRED, {**_named(one.session), "candidates": len(one.found)})
                for one in self.deferred
            ),
            *((kinds.SESSION_UNREADABLE, {**_named(one), "why": one.why}) for one in self.unreadable),
            *((kinds.SOURCE_INITIALISED, {"source": name, "first_run": first_run}) for name in self.initialised),
        ]


def scan(
    sources: Iterable[Source],
    prefilter: Prefilter,
    keys: ScanKeys,
    *,
    seen: Callable[[str], bool],
    is_initialised: Callable[[str], bool],
    redact: Callable[[str], str],
    stop: Stopping | None = None,
) -> Scanned:
    """Looks at all that is not seen yet; `seen` is asked by `projections.sweep.name_of`. Raises Stopped."""
    scanned = Scanned()
    budget = Budget(keys.max_candidates, keys.max_per_session)
    for source in sources:
        try:
            found = [one for one in source.sessions() if not seen(name_of(one.source, plain_key(one.key)))]
        except SourceFailed as error:
            scanned.failed[source.name] = redact(error.detail)[:WHY_CHARS_MAX]
            continue
        is_first = not is_initialised(source.name)
        if is_first:
            scanned.initialised.append(source.name)
        for one in found:
            if stop is not None and stop.is_set():
                raise Stopped(f"asked to end while the source {source.name} was read")
            if is_first and keys.first_run == "baseline":
                if isinstance(one, Found):
                    scanned.baselined.append(one)
                else:
                    scanned.unreadable.append(_cut(one, redact))
                continue
            _look_at(one, source, prefilter, keys, budget, redact, scanned)
    return scanned


def keys_of(chosen: Sequence[Candidates]) -> list[tuple[str, str]]:
    """The sessions as they are recorded: source and key."""
    return [(one.session.source, plain_key(one.session.key)) for one in chosen]


def _look_at(
    one: Found | Unreadable,
    source: Source,
    prefilter: Prefilter,
    keys: ScanKeys,
    budget: Budget,
    redact: Callable[[str], str],
    scanned: Scanned,
) -> None:
    """Puts one session where it belongs."""
    if isinstance(one, Unreadable):
        scanned.unreadable.append(_cut(one, redact))
        return
    pattern = next((each for each in keys.exclude if _matches(one.where, each)), None)
    if pattern is not None:
        scanned.excluded.append((one, pattern))
        return
    candidates = _candidates(one, source, prefilter)
    if isinstance(candidates, Unreadable):
        scanned.unreadable.append(_cut(candidates, redact))
    elif not candidates.found:
        scanned.clean.append(one)
    elif (taken := budget.take(candidates)) is None:
        scanned.deferred.append(candidates)
    else:
        scanned.chosen.append(msgspec.structs.replace(candidates, found=taken))


def _candidates(one: Found, source: Source, prefilter: Prefilter) -> Candidates | Unreadable:
    try:
        return prefilter.candidates(source.read(one))
    except LedgerError as error:
        return Unreadable(one.source, one.key, one.where, error.detail)
    except Exception as error:  # one session that nobody foresaw must not keep all others from being read
        return Unreadable(one.source, one.key, one.where, f"{type(error).__name__}: {error}")


def _matches(where: str, pattern: str) -> bool:
    return fnmatchcase(where, str(Path(pattern).expanduser()) if pattern.startswith("~") else pattern)


def _cut(one: Unreadable, redact: Callable[[str], str]) -> Unreadable:
    return msgspec.structs.replace(one, where=redact(one.where), why=redact(one.why)[:WHY_CHARS_MAX])


def _named(one: Found | Unreadable) -> dict[str, str]:
    return {"source": one.source, "key": plain_key(one.key)}
