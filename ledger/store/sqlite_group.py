"""What one transaction of a SQLite ledger will write, staged in memory until it is decided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import msgspec

from ledger.events.kinds import is_decisive
from ledger.events.model import END_SEQ, NewEvent
from ledger.store import sealing
from ledger.store.judging import Judged
from ledger.store.sqlite_file import Statement

Row = tuple[Any, ...]

_ROWS_AT_ONCE = (256, 64, 16, 4, 1)  # few statement texts, so that SQLite's prepared ones are used again


class KnownStream(msgspec.Struct):
    """A row of `streams`, as it stands after the last commit or inside the current group."""

    stream_n: int
    stream: str
    root_n: int
    root: str
    task_id: str | None
    saddle: str
    contiguous: bool
    high_seq: int
    events: int
    last_recorded_at: int

    def copy(self) -> KnownStream:
        return msgspec.structs.replace(self)


class Group:
    """What one transaction will write, staged in memory: nothing of it is known outside before COMMIT."""

    def __init__(self, position: int, stream_n: int, root_n: int, now_ns: int) -> None:
        self.first = position + 1
        self.position = position
        self.stream_n = stream_n
        self.root_n = root_n
        self.now_ns = now_ns
        self.rows: list[Row] = []
        self.sealed: list[bytes] = []
        self.streams: dict[str, KnownStream] = {}
        self.roots: dict[str, int] = {}
        self.new: dict[int, list[NewEvent]] = {}
        self.losers: list[Row] = []
        self.tallies: dict[int, list[int]] = {}

    def add(self, known: KnownStream, events: Sequence[NewEvent]) -> None:
        identity = sealing.identity(known.stream, known.task_id, known.root)
        stream_n, root_n, stream, position = known.stream_n, known.root_n, known.stream, self.position
        for event in events:
            position += 1
            recorded_at = event.recorded_at if event.recorded_at is not None else self.now_ns
            self.sealed.append(
                sealing.row(position, event.seq, event.at, recorded_at, event.digest, identity, event.extra)
            )
            self.rows.append(
                (
                    position,
                    stream_n,
                    event.seq,
                    root_n,
                    is_decisive(stream, event.kind),
                    event.at,
                    recorded_at,
                    event.digest,
                    event.kind,
                    event.actor,
                    event.extra,
                    event.payload,
                )
            )
            if event.seq > known.high_seq and event.seq != END_SEQ:
                known.high_seq = event.seq
        self.position = position
        known.events += len(events)
        known.last_recorded_at = recorded_at
        self.new.setdefault(stream_n, []).extend(events)

    def tally(self, stream_n: int, verdict: Judged) -> None:
        counts = self.tallies.setdefault(stream_n, [0, 0, 0, 0, 0])
        counts[0] += 1
        counts[1] += verdict.duplicates
        counts[2] += len(verdict.losers)
        counts[3] += verdict.late
        counts[4] += verdict.results_repeated

    def lose(self, known: KnownStream, event: NewEvent) -> None:
        content = (event.digest, event.kind, event.actor, event.payload, event.at)
        received_at = self.now_ns if event.recorded_at is None else event.recorded_at
        self.losers.append((known.stream_n, event.seq, *content, received_at))

    def statements(self) -> list[Statement]:
        """What makes the group's streams, events and losers durable."""
        return [
            *_inserts("INSERT INTO roots VALUES ", [(n, root) for root, n in self.roots.items()]),
            *_inserts(
                "INSERT INTO streams VALUES ",
                [_stream_row(known) for known in self.streams.values()],
                " ON CONFLICT (stream_n) DO UPDATE SET (high_seq, events, last_recorded_at)"
                " = (excluded.high_seq, excluded.events, excluded.last_recorded_at)",
            ),
            *_inserts("INSERT INTO events VALUES ", self.rows),
            *_inserts("INSERT OR IGNORE INTO losers VALUES ", self.losers),
        ]

    @property
    def writes_something(self) -> bool:
        return bool(self.rows or self.losers or self.streams)


def _stream_row(known: KnownStream) -> Row:
    return (
        known.stream_n,
        known.stream,
        known.root_n,
        known.task_id,
        known.saddle,
        int(known.contiguous),
        known.high_seq,
        known.events,
        known.last_recorded_at,
    )


def _inserts(head: str, rows: Sequence[Row], tail: str = "") -> Iterator[Statement]:
    """The rows as few multi-row statements: each runs in the driver's thread without the interpreter's lock."""
    start = 0
    while start < len(rows):
        count = next(n for n in _ROWS_AT_ONCE if n <= len(rows) - start)
        values = [value for row in rows[start : start + count] for value in row]
        yield _insert_text(head, len(rows[0]), count, tail), values
        start += count


@cache
def _insert_text(head: str, columns: int, count: int, tail: str) -> str:
    one = "(" + ", ".join("?" * columns) + ")"
    return head + ", ".join([one] * count) + tail
