"""The ledger in plain dicts and lists: the readable specification of a store.

It keeps nothing when the process ends. With the other backends it shares only the form of the seals, so that
a test can hold a backend against it and trust what it finds.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from enum import Enum, auto

import msgspec
from msgspec.structs import replace

from ledger.errors import NotFound, SessionElsewhere, StreamMoved
from ledger.events.content import same_payload
from ledger.events.kinds import RESULT, is_decisive, is_own_stream
from ledger.events.model import END_SEQ, NO_EVENTS, OPENING_SEQ, NewEvent, Recorded
from ledger.store import sealing
from ledger.store.base import (
    Appended,
    Checkpoint,
    Delivery,
    DeliveryTotals,
    Heads,
    Listener,
    Loser,
    Opening,
    Seal,
    StreamInfo,
    Token,
    Write,
    Written,
)


class MemoryStore:
    """A Store without a file. `clock` gives nanoseconds since the Unix epoch.

    An append never awaits, so it runs alone; it works on copies of the streams that it touches, so one that
    fails leaves nothing.
    """

    def __init__(self, clock: Callable[[], int] = time.time_ns, buckets: int = 1) -> None:
        self.ledger_id = secrets.token_hex(8)
        self.buckets = buckets
        self._clock = clock
        self._streams: dict[str, _Stream] = {}
        self._log: list[Recorded] = []  # in commit order, over all buckets
        self._by_bucket: list[list[Recorded]] = [[] for _ in range(buckets)]
        self._by_root: dict[str, list[Recorded]] = {}
        self._seals: list[list[Seal]] = [[] for _ in range(buckets)]
        self._checkpoints: dict[str, Checkpoint] = {}
        self._tokens: dict[str, Token] = {}
        self._listeners: dict[object, Listener] = {}

    def bucket_of(self, root: str) -> int:
        return int.from_bytes(hashlib.sha256(root.encode()).digest()[:8]) % self.buckets

    async def append(self, writes: Sequence[Write]) -> Appended:
        if len({write.stream for write in writes}) < len(writes):
            raise ValueError("an append names a stream once")
        draft = _Draft(self._streams, self._clock())
        written = tuple(draft.write(write) for write in writes)
        self._commit(draft)
        return Appended(written, self._heads())

    def _commit(self, draft: _Draft) -> None:
        touched = {self.bucket_of(stream.root) for stream in draft.streams.values()}
        if len(touched) > 1:
            raise ValueError(f"the writes of one append lie in several buckets: {sorted(touched)}")
        self._streams.update(draft.streams)
        if not draft.rows:
            return
        (bucket,) = touched
        stored = [self._place(bucket, stream_name, event) for stream_name, event in draft.rows]
        self._seal(bucket, stored)
        moved, heads = frozenset(event.root for event in stored), self._heads()
        for listener in list(self._listeners.values()):
            listener(moved, heads)

    def _place(self, bucket: int, name: str, event: Recorded) -> Recorded:
        placed = replace(event, bucket=bucket, position=len(self._by_bucket[bucket]) + 1)
        self._streams[name].rows[event.seq] = placed
        self._log.append(placed)
        self._by_bucket[bucket].append(placed)
        self._by_root.setdefault(event.root, []).append(placed)
        return placed

    def _seal(self, bucket: int, stored: list[Recorded]) -> None:
        chain = self._seals[bucket]
        previous = chain[-1].digest if chain else sealing.first_link(self.ledger_id, bucket)
        digest = sealing.link(previous, map(sealing.row_of, stored))
        chain.append(Seal(bucket, len(chain) + 1, stored[0].position, stored[-1].position, digest))

    def _heads(self) -> Heads:
        return tuple(map(len, self._by_bucket))

    async def heads(self) -> Heads:
        return self._heads()

    async def stream(self, stream: str) -> StreamInfo | None:
        found = self._streams.get(stream)
        return found.info() if found else None

    async def streams_of(self, root: str, *, after: str = "", limit: int = 1000) -> list[StreamInfo]:
        under = sorted(name for name, stream in self._streams.items() if stream.root == root and name > after)
        return [self._streams[name].info() for name in under[:limit]]

    async def last_recorded_at(self, streams: Sequence[str]) -> dict[str, int]:
        return {name: self._streams[name].last_recorded_at for name in streams if name in self._streams}

    async def read_stream(
        self, stream: str, *, from_seq: int = -1, limit: int = 1000, backward: bool = False
    ) -> list[Recorded]:
        rows = self._streams[stream].rows if stream in self._streams else {}
        if backward:
            seqs = sorted((seq for seq in rows if seq <= from_seq), reverse=True)
        else:
            seqs = sorted(seq for seq in rows if seq >= from_seq)
        return [rows[seq] for seq in seqs[:limit]]

    async def read_root(self, root: str, *, after: int = 0, limit: int = 1000) -> list[Recorded]:
        events = self._by_root.get(root, [])
        start = bisect_right(events, after, key=lambda event: event.position)
        return events[start : start + limit]

    async def read_feed(self, after: Heads, *, limit: int = 1000, decisive: bool = False) -> list[Recorded]:
        events = [event for log, seen in zip(self._by_bucket, after, strict=True) for event in log[seen:]]
        if decisive:
            events = [event for event in events if is_decisive(event.session_id, event.kind)]
        return events[:limit]

    async def roots_moved(self, after: Heads, *, limit: int = 1000) -> list[str]:
        moved = (event.root for event in reversed(self._log) if event.position > after[event.bucket])
        return list(dict.fromkeys(moved))[:limit]

    async def gaps(self, stream: str, *, limit: int = 100) -> list[tuple[int, int]]:
        if stream not in self._streams:
            return []
        seqs = sorted(seq for seq in self._streams[stream].rows if 0 <= seq < END_SEQ)
        pairs = zip([-1, *seqs], seqs, strict=False)
        return [(one + 1, next_one - 1) for one, next_one in pairs if next_one > one + 1][:limit]

    async def losers(self, stream: str, *, limit: int = 100) -> list[Loser]:
        losers = self._streams[stream].losers.values() if stream in self._streams else []
        return sorted(losers, key=lambda loser: (loser.seq, loser.received_at, loser.digest))[:limit]

    async def deliveries(self, root: str) -> list[Delivery]:
        under = (stream.delivery for stream in self._streams.values() if stream.root == root)
        return sorted((delivery for delivery in under if delivery.deliveries), key=lambda one: one.stream)

    async def delivery_totals(self) -> list[DeliveryTotals]:
        by_saddle: dict[str, list[_Stream]] = {}
        for name, stream in self._streams.items():
            if not is_own_stream(name):
                by_saddle.setdefault(stream.opening.saddle, []).append(stream)
        return [_total(saddle, by_saddle[saddle]) for saddle in sorted(by_saddle)]

    async def seals(self, bucket: int, *, after: int = 0, limit: int = 1000) -> list[Seal]:
        return self._seals[bucket][after : after + limit]

    async def load_checkpoint(self, name: str, version: str) -> Checkpoint | None:
        checkpoint = self._checkpoints.get(name)
        return checkpoint if checkpoint and checkpoint.version == version else None

    async def save_checkpoint(self, name: str, checkpoint: Checkpoint) -> None:
        self._checkpoints[name] = checkpoint

    async def tokens(self) -> list[Token]:
        return sorted(self._tokens.values(), key=lambda token: (token.created_at, token.id))

    async def put_token(self, token: Token) -> None:
        self._tokens[token.id] = token

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        key = object()
        self._listeners[key] = listener

        def end() -> None:
            self._listeners.pop(key, None)

        return end

    async def close(self) -> None:
        """There is nothing to let go of."""


class _Stream(msgspec.Struct):
    """A registered stream: how it was opened, what it holds and how that came in."""

    name: str
    opening: Opening
    delivery: Delivery
    last_recorded_at: int
    rows: dict[int, Recorded] = {}
    losers: dict[tuple[int, bytes], Loser] = {}
    high_seq: int = OPENING_SEQ

    @property
    def root(self) -> str:
        return self.opening.root

    def copy(self) -> _Stream:
        return replace(self, rows=dict(self.rows), losers=dict(self.losers))

    def info(self) -> StreamInfo:
        return StreamInfo(
            stream=self.name,
            task_id=self.opening.task_id,
            root=self.root,
            saddle=self.opening.saddle,
            contiguous=self.opening.contiguous,
            high_seq=self.high_seq,
            events=len(self.rows),
            last_recorded_at=self.last_recorded_at,
        )


class _Fate(Enum):
    """What becomes of an event that is delivered. LATE is stored too, below a seq that was there before."""

    STORED = auto()
    LATE = auto()
    DUPLICATE = auto()
    CONFLICT = auto()


class _Draft:
    """What one append would change: its streams as they would be, and its rows, still without a position."""

    def __init__(self, streams: dict[str, _Stream], now: int) -> None:
        self.streams: dict[str, _Stream] = {}
        self.rows: list[tuple[str, Recorded]] = []
        self._before = streams
        self._now = now

    def write(self, write: Write) -> Written:
        stream, opened = self._admit(write)
        opening_event = write.opening.event if write.opening else None
        conflicts = []
        if opening_event and self._deliver(stream, opening_event) is _Fate.CONFLICT:
            conflicts.append(opening_event.seq)
        fates = [self._deliver(stream, event) for event in write.events]
        conflicts += [event.seq for event, fate in zip(write.events, fates, strict=True) if fate is _Fate.CONFLICT]
        if write.events:
            stream.delivery = _counted(stream.delivery, write.events, fates)
        return Written(
            stored=fates.count(_Fate.STORED) + fates.count(_Fate.LATE),
            duplicates=fates.count(_Fate.DUPLICATE),
            conflicts=tuple(conflicts),
            high_seq=stream.high_seq,
            opened=opened,
            task_id=stream.opening.task_id,
            root=stream.root,
            contiguous=stream.opening.contiguous,
        )

    def _admit(self, write: Write) -> tuple[_Stream, bool]:
        """The draft's copy of the stream and whether it is new, or the error that refuses the write."""
        held = self.streams.get(write.stream) or self._before.get(write.stream)
        opening = held.opening if held else write.opening
        if opening is None or (held and write.saddle not in (None, opening.saddle)):
            raise _unknown(write.stream)
        if write.opening and write.opening.task_id != opening.task_id:
            raise _elsewhere(write.stream, opening.task_id, write.opening.task_id)
        may_stand_at = (held.high_seq,) if held else (NO_EVENTS, OPENING_SEQ)
        if write.expected_seq is not None and write.expected_seq not in may_stand_at:
            raise StreamMoved(write.stream, write.expected_seq, may_stand_at[0])
        stream = held.copy() if held else _Stream(write.stream, opening, Delivery(write.stream), self._now)
        self.streams[write.stream] = stream
        return stream, held is None

    def _deliver(self, stream: _Stream, event: NewEvent) -> _Fate:
        held = stream.rows.get(event.seq)
        if held is None:
            self._store(stream, event)
            late = 0 <= event.seq < stream.high_seq
            stream.high_seq = max(stream.high_seq, event.seq if event.seq < END_SEQ else OPENING_SEQ)
            return _Fate.LATE if late else _Fate.STORED
        if _same_content(held, event):
            return _Fate.DUPLICATE
        stream.losers.setdefault((event.seq, event.digest), self._loser(stream.name, event))
        return _Fate.CONFLICT

    def _store(self, stream: _Stream, event: NewEvent) -> None:
        row = Recorded(
            position=0,
            bucket=0,
            session_id=stream.name,
            seq=event.seq,
            kind=event.kind,
            actor=event.actor,
            at=event.at,
            recorded_at=self._now if event.recorded_at is None else event.recorded_at,
            task_id=stream.opening.task_id,
            root=stream.root,
            payload=event.payload,
            digest=event.digest,
            extra=event.extra,
        )
        stream.rows[event.seq] = row
        stream.last_recorded_at = row.recorded_at
        self.rows.append((stream.name, row))

    def _loser(self, stream: str, event: NewEvent) -> Loser:
        return Loser(
            stream=stream,
            seq=event.seq,
            kind=event.kind,
            actor=event.actor,
            payload=event.payload,
            digest=event.digest,
            at=event.at,
            received_at=self._now if event.recorded_at is None else event.recorded_at,
        )


def _same_content(held: Recorded, event: NewEvent) -> bool:
    if held.digest == event.digest:
        return True
    return held.kind == event.kind and held.actor == event.actor and same_payload(held.payload, event.payload)


def _counted(before: Delivery, events: Sequence[NewEvent], fates: Sequence[_Fate]) -> Delivery:
    again = (_Fate.DUPLICATE, _Fate.CONFLICT)
    repeated = sum(event.kind == RESULT and fate in again for event, fate in zip(events, fates, strict=True))
    return Delivery(
        stream=before.stream,
        deliveries=before.deliveries + 1,
        duplicates=before.duplicates + fates.count(_Fate.DUPLICATE),
        conflicts=before.conflicts + fates.count(_Fate.CONFLICT),
        late=before.late + fates.count(_Fate.LATE),
        results_repeated=before.results_repeated + repeated,
    )


def _total(saddle: str, streams: Sequence[_Stream]) -> DeliveryTotals:
    counts = [stream.delivery for stream in streams]
    return DeliveryTotals(
        saddle=saddle,
        sessions=len(streams),
        events=sum(len(stream.rows) for stream in streams),
        deliveries=sum(one.deliveries for one in counts),
        duplicates=sum(one.duplicates for one in counts),
        conflicts=sum(one.conflicts for one in counts),
        late=sum(one.late for one in counts),
        results_repeated=sum(one.results_repeated for one in counts),
    )


def _unknown(stream: str) -> NotFound:
    return NotFound(
        f"session {stream!r} is not known here",
        code="unknown_session",
        hint="Open it with POST /api/saddle/sessions, or send `open` along with its first chunk.",
    )


def _elsewhere(stream: str, held: str | None, asked: str | None) -> SessionElsewhere:
    return SessionElsewhere(f"session {stream!r} works on task {held!r}, not on task {asked!r}")
