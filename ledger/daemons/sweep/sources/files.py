"""Transcripts that are files below a folder: of claude-code, codex and gemini. A file is a session, with those of the
subagents whose rows stand in it. Its key is FILE:MTIME:SIZE: a file that has grown is another session to look at."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ledger.daemons.sweep.model import Found, Moment, SessionText, SessionUnreadable, SourceFailed, Unreadable
from ledger.daemons.sweep.sources.moments import moments_of
from ledger.transcripts.finding import candidates
from ledger.transcripts.formats import (
    CLAUDE_CODE,
    CLAUDE_STREAM,
    CODEX,
    CODEX_STREAM,
    GEMINI,
    LINES_LOOKED_AT,
    Format,
    format_of,
)
from ledger.transcripts.model import Batch, NoSession, Report
from ledger.transcripts.reading import LineReader

_FORMATS: dict[str, tuple[Format, ...]] = {
    "claude-code": (CLAUDE_CODE, CLAUDE_STREAM),
    "codex": (CODEX, CODEX_STREAM),
    "gemini": (GEMINI,),
}
_SUFFIXES = {"claude-code": {".jsonl"}, "codex": {".jsonl"}, "gemini": {".json", ".jsonl"}}

TYPES = frozenset(_FORMATS)


class FileSource:
    """All transcripts of an agent (`type_`, of TYPES) at or below `root`. Links are followed within `root` only."""

    def __init__(self, type_: str, name: str, root: Path) -> None:
        self.type = type_
        self.name = name
        self._root = root

    def sessions(self) -> Iterator[Found | Unreadable]:
        """The longest unchanged first. Raises SourceFailed where the root cannot be listed."""
        try:
            root = self._root.resolve(strict=True)
            if root.is_dir():
                os.scandir(root).close()
        except (OSError, RuntimeError) as error:  # RuntimeError: links that go round
            raise SourceFailed(f"source {self.name!r}: {self._root}: {_why(error)}") from error
        found: dict[Path, Found | Unreadable] = {}
        for path in candidates(self._root):
            if path.suffix in _SUFFIXES[self.type]:
                self._look_at(path, root, found)
        yield from sorted(found.values(), key=lambda one: (getattr(one, "at_ns", None) or 0, one.key))

    def read(self, found: Found) -> SessionText:
        """Raises SessionUnreadable, also where nothing of the file can be read. One that holds something else than a
        session of the agent has no moments."""
        path, report = Path(found.where), Report()
        try:
            format_ = format_of(path)
            if format_ is None and not _has_anything(path):
                raise SessionUnreadable(f"source {found.source!r}: {found.where}: none of its first lines is JSON")
            if format_ not in _FORMATS[self.type]:
                return self._without_session(found, path)
            transcript = format_.open_transcript(path, report)
        except NoSession:
            return self._without_session(found, path)
        except OSError as error:
            raise unreadable(found, error) from error
        session = getattr(transcript, "session", None)
        title = session.title if session is not None else path.stem
        cwd = session.cwd if session is not None else None
        return SessionText(found, title, cwd, self._moments(found, transcript.batches()))

    def _moments(self, found: Found, batches: Iterator[Batch]) -> Iterator[Moment]:
        try:
            yield from moments_of(batches)
        except OSError as error:
            raise unreadable(found, error) from error

    def _look_at(self, path: Path, root: Path, found: dict[Path, Found | Unreadable]) -> None:
        """Adds what is at `path`; one file that several links lead to is one session."""
        try:
            real = path.resolve(strict=True)
            stat = real.stat()
        except OSError as error:
            found[path] = Unreadable(self.name, one_line(str(path)), str(path), _why(error))
            return
        if real != root and not real.is_relative_to(root):
            why = f"a link that leads out of {self._root}; it is not followed"
            found[path] = Unreadable(self.name, one_line(str(path)), str(path), why)
        elif stat.st_size:
            key = f"{one_line(str(real))}:{stat.st_mtime_ns}:{stat.st_size}"
            found[real] = Found(self.name, key, str(real), self.type, None, stat.st_mtime_ns, stat.st_size)

    def _without_session(self, found: Found, path: Path) -> SessionText:
        return SessionText(found, path.stem, None, ())


def unreadable(found: Found, error: Exception) -> SessionUnreadable:
    return SessionUnreadable(f"source {found.source!r}: {found.where}: {_why(error)}")


def one_line(text: str) -> str:
    """A name of a file as a part of a key, which stands on one line of text in UTF-8."""
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(c if c.isprintable() and c != "\\" else f"\\u{ord(c):04x}" for c in text)


def _has_anything(path: Path) -> bool:
    """False for a file that begins with nothing but damage. Raises OSError."""
    if path.suffix != ".jsonl":
        return True
    report = Report()
    for line in LineReader(path, report):
        if line.rows or line.number >= LINES_LOOKED_AT:
            return bool(line.rows)
    return not report.bad_lines


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
