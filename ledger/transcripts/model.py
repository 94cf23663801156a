"""What reading a transcript yields: sessions, their events in batches, and what could not be taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from ledger.events.content import given as given
from ledger.events.model import ID_CHARS_MAX

Row = dict[str, Any]
Said = tuple[str, str, dict[str, Any]]  # kind, actor, payload
Event = dict[str, Any]  # {seq, kind, actor, payload, at?}, as it goes over the wire

USER, MODEL, HARNESS = "user", "model", "harness"  # actors: a person, the agent, the program around it

TITLE_CHARS_MAX = 120
SUFFIX_CHARS_MAX = 60


class Mark(NamedTuple):
    """A place between two lines: the bytes and the lines before it."""

    offset: int = 0
    line: int = 0


class TranscriptSession(msgspec.Struct, frozen=True):
    """A session as its transcript shows it.

    `thread_id` is the session in which the work began: the parent's of a subagent, the first one of a resumed
    session, else the session's own. All sessions of a thread work on one task. `started_at` is an instant as the
    transcript writes it; without one the first event's counts.
    """

    session_id: str
    thread_id: str
    title: str
    agent: str
    cwd: str | None = None
    model: str | None = None
    parent_session_id: str | None = None
    resumed_from: str | None = None
    started_at: str | int | None = None


class Batch(msgspec.Struct, frozen=True):
    """Events of one session, in the order of the file. `offset` is how far into the file it reaches, in bytes."""

    session: TranscriptSession
    events: list[Event]
    offset: int


class BadLine(msgspec.Struct, frozen=True):
    """Something that was not taken as it stands: where, and why. `line` counts from 1; it is 0 where the whole file
    is meant, or a record of a database that `why` names. `str()` gives FILE:LINE: WHY."""

    path: Path
    line: int
    why: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.why}" if self.line else f"{self.path}: {self.why}"


class Report:
    """What a reader has to say besides events: bad lines, and how many rows of which type were left out."""

    def __init__(self, on_bad_line: Callable[[BadLine], None] | None = None) -> None:
        self.bad_lines = 0
        self.skipped: Counter[str] = Counter()
        self._on_bad_line = on_bad_line

    def bad_line(self, path: Path, line: int, why: str) -> None:
        self.bad_lines += 1
        if self._on_bad_line is not None:
            self._on_bad_line(BadLine(path, line, why))

    def skip(self, type_: str) -> None:
        self.skipped[type_] += 1


class Transcript(Protocol):
    """An opened transcript."""

    @property
    def is_child(self) -> bool:
        """True where all of it is about a subagent: its parent is to be delivered first."""
        ...

    @property
    def mark(self) -> Mark | None:
        """Where to go on when the file has grown, once `batches` is exhausted; None where it is read as a whole."""
        ...

    def batches(self) -> Iterator[Batch]:
        """The events in file order, parents before children within each stretch."""
        ...


class NoSession(Exception):
    """The file holds no session of this agent. The text says why."""


def title_of(text: str) -> str:
    """The first line with something on it, at most TITLE_CHARS_MAX characters."""
    line = next((line for line in map(str.strip, text.splitlines()) if line), "")
    return line if len(line) <= TITLE_CHARS_MAX else line[: TITLE_CHARS_MAX - 1] + "…"


def checked_id(session_id: str, path: Path) -> str:
    """The id as it is. Raises NoSession where no session of the ledger can have it, with room for a suffix."""
    if not session_id.isprintable() or session_id.startswith("@") or "/" in session_id:
        raise NoSession(f"{path}: {session_id[:80]!r} cannot be a session's id")
    if not 0 < len(session_id) <= ID_CHARS_MAX - SUFFIX_CHARS_MAX:
        raise NoSession(f"{path}: {session_id[:80]!r} cannot be a session's id")
    return session_id
