"""opencode's sessions: records of sessions, messages and parts, whether they lie in its database or in files.

Keys. Ids of messages and parts hold the time at which they were made, to a 4096th of a millisecond, in 48 bits of
hexadecimal digits; they rise within a session. seq = (id's time − the session's creation + a day) × 16 + n for the
n-th event of a record. So a record has the same key in the database, in the older files, and in a copy of either.
A session whose first message has another kind of id is counted by place: (message × 1000 + part) × 16 + n.

A forked session copies the messages of the one before under ids of its own: messages that are older than their
session. What they cost has been counted there, so their usage is left out.

What has been read once stands: opencode prunes and edits parts in place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from ledger.events import kinds
from ledger.transcripts.batches import Gathered, gathered
from ledger.transcripts.bounding import bounded
from ledger.transcripts.model import Batch, Event, Report, Row, Said, TranscriptSession, checked_id, title_of
from ledger.transcripts.opencode_parts import AGENT, error_of, is_settled, said_by

SLOTS = 16  # events of one record at most
PLACES = 1000  # parts of a message at most, where places are counted

_TICKS_OF_MS = 4096
_WRAPS_AT = 2**48
_DAY_MS = 86_400_000
_ID = re.compile(r"[a-z]+_([0-9a-f]{12})[0-9A-Za-z]{14}")


class Message(msgspec.Struct, frozen=True):
    """A message with its parts, in order. `info` and `parts` are the records as opencode writes them."""

    id: str
    created_ms: int
    info: Row
    parts: list[tuple[str, Row]]


class SessionRecord(msgspec.Struct, frozen=True):
    """`root_id` is the session at the top of the tree that this one stands in."""

    id: str
    root_id: str
    title: str
    created_ms: int
    directory: str | None = None
    parent_id: str | None = None


class OpencodeTranscript:
    """One session. Read as a whole each time: records are written over."""

    def __init__(self, path: Path, record: SessionRecord, messages: Iterable[Message], report: Report) -> None:
        self._path = path
        self._record = record
        self._messages = messages
        self._report = report

    @property
    def is_child(self) -> bool:
        return self._record.parent_id is not None

    @property
    def mark(self) -> None:
        return None

    def batches(self) -> Iterator[Batch]:
        return gathered(self._parts())

    def _parts(self) -> Iterator[Gathered]:
        messages = list(self._messages)
        session = self._session(messages)
        by_place = bool(messages) and _ID.fullmatch(messages[0].id) is None
        for place, message in enumerate(messages, start=1):
            is_copy = message.created_ms < self._record.created_ms
            for index, (part_id, part) in enumerate(message.parts):
                if is_settled(part, message.info):
                    first = self._place(place, index) if by_place else self._first_seq(part_id, message)
                    said = list(said_by(part, str(message.info.get("role"))))
                    if is_copy:
                        said = [None if one and one[0] == kinds.USAGE else one for one in said]
                    yield session, *self._events(said, first, _at(part, message)), 0
            if (error := error_of(message.info)) is not None:
                first = self._place(place, PLACES - 1) if by_place else self._first_seq(message.id, message)
                yield session, *self._events([error], first, _at(message.info, message)), 0

    def _session(self, messages: list[Message]) -> TranscriptSession:
        record = self._record
        models = (message.info.get("modelID") for message in messages)
        return TranscriptSession(
            session_id=checked_id(record.id, self._path),
            thread_id=record.root_id,
            title=title_of(record.title) or f"opencode session {record.id[:12]}",
            agent=AGENT,
            cwd=record.directory,
            model=next((model for model in models if isinstance(model, str)), None),
            parent_session_id=record.parent_id,
            started_at=record.created_ms or None,
        )

    def _events(self, said: list[Said | None], first_seq: int | None, at: int | None) -> tuple[list[Event], int]:
        events: list[Event] = []
        size = 0
        if first_seq is None:
            return events, size
        for number, one in enumerate(said[:SLOTS]):
            if one is None:
                continue
            kind, actor, payload = one
            payload, bytes_ = bounded(payload)
            event = {"seq": first_seq + number, "kind": kind, "actor": actor, "payload": payload}
            events.append(event if at is None else {**event, "at": at})
            size += bytes_
        return events, size

    def _place(self, message: int, part: int) -> int | None:
        return (message * PLACES + part) * SLOTS if part < PLACES else None

    def _first_seq(self, id_: str, message: Message) -> int | None:
        found = _ID.fullmatch(id_)
        ticks = -1 if found is None else self._ticks(int(found[1], 16), message.created_ms)
        if ticks < 0:
            self._report.bad_line(self._path, 0, f"the id {id_[:80]!r} holds no time within its session; left out")
            return None
        return ticks * SLOTS

    def _ticks(self, wrapped: int, near_ms: int) -> int:
        """The id's time after the day before the session's creation; 48 bits wrap every two years."""
        near = near_ms * _TICKS_OF_MS
        ticks = near + (wrapped - near + _WRAPS_AT // 2) % _WRAPS_AT - _WRAPS_AT // 2
        return ticks - (self._record.created_ms - _DAY_MS) * _TICKS_OF_MS


def _at(record: Row, message: Message) -> int | None:
    """When a record happened: its own start, else its message's creation (Unix ms)."""
    for times in (record.get("time"), _state_times(record)):
        if isinstance(times, dict):
            for name in ("start", "created"):
                if isinstance(times.get(name), int):
                    return int(times[name])
    return message.created_ms or None


def _state_times(record: Row) -> Any:
    state = record.get("state")
    return state.get("time") if isinstance(state, dict) else None
