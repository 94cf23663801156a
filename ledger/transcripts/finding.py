"""Which transcripts lie below a folder, and whether they have changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path

import msgspec

from ledger.transcripts import opencode_db, opencode_files
from ledger.transcripts.formats import OPENCODE_DB, OPENCODE_FILES, SUFFIXES, Format, format_of
from ledger.transcripts.model import Mark, Report, Transcript
from ledger.transcripts.opencode import SessionRecord

_RECORDS = frozenset({"message", "part"})  # folders of opencode's storage that belong to its sessions' files


class Found(msgspec.Struct, frozen=True):
    """A transcript. `key` names it among all others on this host; `signature` differs once it has changed; `size` is
    how far it can be read (bytes), where that is known. `open` takes what is not one to the report."""

    path: Path
    format: Format
    key: str
    signature: str
    size: int
    open: Callable[[Report, Mark | None, bool], Transcript]


class Finder:
    """Looks at files, and again at those only that have changed since."""

    def __init__(self, agents: Collection[str]) -> None:
        self._agents = agents
        self._formats: dict[Path, tuple[str, Format | None]] = {}
        self._databases: dict[Path, tuple[str, list[Found]]] = {}

    def found_at(self, path: Path) -> list[Found] | None:
        """The transcripts in a file: one, or each session of a database. None where the file holds none of the
        agents that are looked for. Raises OSError."""
        changes = _changes(path)
        before = self._formats.get(path)
        if before is not None and (
            before[0] == changes or (before[1] is not None and _same_file(before[0], changes))
        ):
            format_ = before[1]
        else:
            format_ = format_of(path)
            self._formats[path] = (changes, format_)
        if format_ is None or format_.agent not in self._agents:
            return None
        if format_ is OPENCODE_DB:
            held = self._databases.get(path)
            if held is None or held[0] != changes:
                held = self._databases[path] = (changes, _sessions_of(path))
            return held[1]
        return [_found(path, format_, changes)]


def candidates(root: Path) -> Iterator[Path]:
    """The files at or below `root` that may hold transcripts, in the order of their names."""
    if root.is_file():
        yield root
        return
    paths = (Path(folder, name) for folder, _, names in os.walk(root) for name in names)  # passes over what has gone
    for path in sorted(path for path in paths if path.suffix in SUFFIXES and path.parent.parent.name not in _RECORDS):
        if path.is_file():
            yield path


def _found(path: Path, format_: Format, changes: str) -> Found:
    if format_ is OPENCODE_FILES:

        def open_files(report: Report, start: Mark | None, growing: bool) -> Transcript:
            return opencode_files.open_transcript(path, report)

        return Found(path, format_, str(path), opencode_files.signature(path), 0, open_files)

    def open_(report: Report, start: Mark | None, growing: bool) -> Transcript:
        opened: Transcript = format_.open_transcript(path, report, start, growing=growing)
        return opened

    return Found(path, format_, str(path), changes, path.stat().st_size, open_)


def _sessions_of(path: Path) -> list[Found]:
    def open_(record: SessionRecord, report: Report, start: Mark | None, growing: bool) -> Transcript:
        return opencode_db.open_transcript(path, record, report)

    return [
        Found(path, OPENCODE_DB, f"{path}#{record.id}", signature, 0, partial(open_, record))
        for record, signature in opencode_db.sessions(path)
    ]


def _same_file(one: str, other: str) -> bool:
    return one.partition(" ")[0] == other.partition(" ")[0]


def _changes(path: Path) -> str:
    """A text that differs once the file has changed; of a database, its write-ahead log too. It begins with what
    names the file itself, whatever it is called."""
    texts = []
    for file in (path, path.with_name(path.name + "-wal")) if path.suffix == ".db" else (path,):
        if file.exists():
            stat = file.stat()
            texts.append(f"{stat.st_ino} {stat.st_size} {stat.st_mtime_ns}")
    return "; ".join(texts)
