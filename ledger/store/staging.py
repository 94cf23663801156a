"""What one transaction will write, staged in memory: nothing of it is known outside before it is durable.

Shared by the backends that keep numbers for streams and roots.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import msgspec

from ledger.events.kinds import is_decisive
from ledger.events.model import END_SEQ, NewEvent
from ledger.store import sealing
from ledger.store.judging import Judged

Row = tuple[Any, ...]
_FIELDS = attrgetter("seq", "kind", "actor", "payload", "digest", "at", "extra", "recorded_at")


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
    """`rows` are the new events, each `(position, stream_n, seq, root_n, decisive, at, recorded_at, digest, kind,
    actor, extra, payload)`; `streams` are those that change, as they will be, `opened` the names of the new ones;
    `losers` are `(stream_n, seq, digest, kind, actor, payload, at, received_at)`."""

    def __init__(self, position: int, stream_n: int, root_n: int, now_ns: int) -> None:
        self.first = position + 1
        self.position = position
        self.stream_n = stream_n
        self.root_n = root_n
        self.now_ns = now_ns
        self.rows: list[Row] = []
        self.sealed: list[bytes] = []
        self.streams: dict[str, KnownStream] = {}
        self.opened: set[str] = set()
        self.roots: dict[str, int] = {}
        self.new: dict[int, list[NewEvent]] = {}
        self.losers: list[Row] = []
        self.tallies: dict[int, list[int]] = {}

    def add(self, known: KnownStream, events: Sequence[NewEvent]) -> None:
        identity = sealing.identity(known.stream, known.task_id, known.root)
        stream, stream_n, root_n = known.stream, known.stream_n, known.root_n
        position, high_seq, now_ns = self.position, known.high_seq, self.now_ns
        for seq, kind, actor, payload, digest, at, extra, recorded_at in map(_FIELDS, events):
            position += 1
            if recorded_at is None:
                recorded_at = now_ns
            decisive = is_decisive(stream, kind)
            content = (digest, kind, actor, extra, payload)
            self.sealed.append(sealing.row(position, seq, at, recorded_at, digest, identity, extra))
            self.rows.append((position, stream_n, seq, root_n, decisive, at, recorded_at, *content))
            if seq > high_seq and seq != END_SEQ:
                high_seq = seq
        self.position, known.high_seq = position, high_seq
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

    @property
    def writes_something(self) -> bool:
        return bool(self.rows or self.losers or self.streams)
