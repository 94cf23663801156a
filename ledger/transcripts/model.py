"""What reading a transcript yields: sessions, their events in batches, and what could not be taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import msgspec

Event = dict[str, Any]  # {seq, kind, actor, payload, at?}, as it goes over the wire

TITLE_CHARS_MAX = 120


class TranscriptSession(msgspec.Struct, frozen=True):
    """A session as its transcript shows it.

    `thread_id` is the session in which the work began: the parent's of a subagent, the first one of a resumed
    session, else the session's own. All sessions of a thread work on one task.
    """

    session_id: str
    thread_id: str
    title: str
    agent: str
    cwd: str | None = None
    model: str | None = None
    parent_session_id: str | None = None
    resumed_from: str | None = None


class Batch(msgspec.Struct, frozen=True):
    """Events of one session, in the order of the file. `offset` is how far into the file it reaches, in bytes."""

    session: TranscriptSession
    events: list[Event]
    offset: int


class BadLine(msgspec.Struct, frozen=True):
    """A line that was not taken as it stands: its number from 1, and why. `str()` gives FILE:LINE: WHY."""

    path: Path
    line: int
    why: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.why}"


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


class Transcript(Protocol):
    """An opened transcript: the session that the file is about, and the events of it and of its children."""

    session: TranscriptSession

    def batches(self) -> Iterator[Batch]:
        """The events in file order, parents before children within each stretch; constant memory."""
        ...


class NoSession(Exception):
    """The file holds no session of this agent. The text says why."""


def title_of(text: str) -> str:
    """The first line with something on it, at most TITLE_CHARS_MAX characters."""
    line = next((line for line in map(str.strip, text.splitlines()) if line), "")
    return line if len(line) <= TITLE_CHARS_MAX else line[: TITLE_CHARS_MAX - 1] + "…"
