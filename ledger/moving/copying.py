"""Copies a ledger from one store to another, of whatever kind, and proves that both tell the same.

A copy can be broken off and taken up again, and taken up again later for what has arrived since: how far it came is
kept in the target. Access tokens go along, so that daemons go on with those that they have; seals and delivery counts
are made anew, and so is the ledger's id: cursors of the old ledger are not good in the new one.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable

import msgspec

from ledger.errors import LedgerDamaged
from ledger.events.model import NewEvent, Recorded
from ledger.moving.placing import Imported, Placer
from ledger.store.base import Checkpoint, Heads, Loser, Opening, Store, StreamInfo, beyond

PAGE_EVENTS = 1000
_VERSION = "1"
_LOSERS_MAX = 2**31 - 1  # of one stream: all of them

Progress = Callable[[int], object]


class Copied(msgspec.Struct, frozen=True):
    """What became of a copy. `roots` and `events` are those that were compared and found equal."""

    imported: Imported
    tokens: int
    roots: int
    events: int


async def copy_ledger(source: Store, target: Store, *, progress: Progress | None = None) -> Copied:
    """Copies what `source` held when the call began, then reads both and compares them. `progress` is called with the
    number of events that were copied or compared, up to twice those that there are.

    Raises LedgerDamaged where the target then tells something else of a root of the source, because it held other
    events there before; what was copied stays."""
    tell = progress or (lambda done: None)
    until = await source.heads()
    placer = Placer(target)
    await _copy_events(source, target, placer, until, tell)
    told = await _told(source, until, lambda done: tell(sum(until) + done))
    for root in told:
        await _copy_losers(source, placer, root, until)
    await placer.flush()
    tokens = await _copy_tokens(source, target)
    for root, expected in told.items():
        if not await _tells(target, root, expected):
            raise LedgerDamaged(
                f"the copy tells something else of {root}", hint="Copy into an empty ledger; the source is as it was."
            )
    return Copied(placer.imported, tokens, len(told), sum(one.events for one in told.values()))


async def _copy_events(source: Store, target: Store, placer: Placer, until: Heads, tell: Progress) -> None:
    openings = _Openings(source)
    name = f"copy of {source.ledger_id}"
    seen = await _reached(source, target, name)
    async for page in _pages(source, seen, until):
        for event in page:
            placer.add(event.session_id, await openings.of(event), _again(event))
        await placer.flush()
        seen = beyond(seen, page)
        await target.save_checkpoint(name, Checkpoint(_VERSION, sum(seen), msgspec.msgpack.encode(seen)))
        tell(sum(seen))


async def _copy_losers(source: Store, placer: Placer, root: str, until: Heads) -> None:
    """Those whose winner was copied: any other would be taken for the winner."""
    async for info in _streams(source, root):
        opening = Opening(info.root, info.task_id, info.saddle, info.contiguous)
        for loser in await source.losers(info.stream, limit=_LOSERS_MAX):
            [winner] = await source.read_stream(info.stream, from_seq=loser.seq, limit=1)
            if winner.position <= until[winner.bucket]:
                placer.add(info.stream, opening, _lost(loser), is_loser=True)
        if placer.is_full():
            await placer.flush()


async def _streams(store: Store, root: str) -> AsyncIterator[StreamInfo]:
    after = ""
    while page := await store.streams_of(root, after=after):
        for info in page:
            yield info
        after = page[-1].stream


async def _copy_tokens(source: Store, target: Store) -> int:
    """Those that the target does not know. The owner's own belongs to the server that made it."""
    known = {token.id for token in await target.tokens()} | {token.hash for token in await target.tokens()}
    new = [token for token in await source.tokens() if token.id not in known and token.hash not in known]
    for token in new:
        await target.put_token(token)
    return len(new)


async def _told(store: Store, until: Heads, tell: Progress) -> dict[str, _Told]:
    """What a store tells of each root."""
    told: dict[str, _Told] = {}
    done = 0
    async for page in _pages(store, (0,) * store.buckets, until):
        for event in page:
            told.setdefault(event.root, _Told()).add(event)
        done += len(page)
        tell(done)
    return told


async def _tells(store: Store, root: str, told: _Told) -> bool:
    """Whether the first events of a root are those that were told."""
    found, after = _Told(), 0
    while found.events < told.events:
        events = await store.read_root(root, after=after, limit=min(PAGE_EVENTS, told.events - found.events))
        if not events:
            return False
        for event in events:
            found.add(event)
        after = events[-1].position
    return found.digest() == told.digest()


class _Told:
    """A digest over a root's events in their order, without what a store gives them."""

    def __init__(self) -> None:
        self.events = 0
        self._hash = hashlib.sha256()

    def add(self, event: Recorded) -> None:
        self.events += 1
        named = [event.session_id, event.seq, event.digest, event.at, event.recorded_at, event.task_id, event.extra]
        self._hash.update(msgspec.msgpack.encode(named))

    def digest(self) -> bytes:
        return self._hash.digest()


class _Openings:
    """How streams were opened; each is asked for once."""

    def __init__(self, source: Store) -> None:
        self._source = source
        self._known: dict[str, Opening] = {}

    async def of(self, event: Recorded) -> Opening:
        stream = event.session_id
        if stream not in self._known:
            info = await self._source.stream(stream)
            assert info is not None  # noqa: S101 — a stream with events is registered
            self._known[stream] = Opening(info.root, info.task_id, info.saddle, info.contiguous)
        return self._known[stream]


async def _reached(source: Store, target: Store, name: str) -> Heads:
    """How far an earlier copy came."""
    kept = await target.load_checkpoint(name, _VERSION)
    if kept is not None:
        with contextlib.suppress(msgspec.MsgspecError):
            return msgspec.msgpack.decode(kept.state, type=Heads)
    return (0,) * source.buckets


async def _pages(store: Store, seen: Heads, until: Heads) -> AsyncIterator[list[Recorded]]:
    while any(position < head for position, head in zip(seen, until, strict=True)):
        page = await store.read_feed(seen, limit=PAGE_EVENTS)
        if not page:
            return
        seen = beyond(seen, page)
        yield [event for event in page if event.position <= until[event.bucket]]


def _again(event: Recorded) -> NewEvent:
    return NewEvent(
        event.seq,
        event.kind,
        event.actor,
        event.payload,
        event.digest,
        event.at,
        event.extra,
        event.recorded_at,
    )


def _lost(loser: Loser) -> NewEvent:
    return NewEvent(
        loser.seq, loser.kind, loser.actor, loser.payload, loser.digest, loser.at, recorded_at=loser.received_at
    )
