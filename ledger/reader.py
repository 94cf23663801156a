"""Reads a root's new events and folds them on. What was folded is kept, so a read costs what is new since the last.

What is kept here and what is checkpointed in the store are caches: dropping them changes no answer.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Collection
from typing import Generic, TypeVar

import msgspec

from ledger.errors import StorageError
from ledger.store.base import Checkpoint, Heads, Store, beyond
from projections.catalog import CATALOG, Catalog
from projections.fold import Projection, fold
from projections.goal import ROOT, Root

S = TypeVar("S")

_EVENTS_AT_ONCE = 500  # folded before others get their turn
_CHECKPOINT_AFTER_EVENTS = 20_000
_CHECKPOINT_BYTES_MAX = 4 * 2**20  # a larger state takes longer to decode than its events to fold
_ROOTS_KEPT = 500
_STOPS_MAX = 64  # past states kept of a root: they share nearly all they hold with the present one


class Folded(msgspec.Struct, Generic[S]):
    """A state, the heads it stands at, how many events were folded since it was last checkpointed, and after how many
    it is again."""

    state: S
    heads: Heads
    unsaved: int = 0
    save_after: int = _CHECKPOINT_AFTER_EVENTS


class _Stops:
    """Past states of a root on the way to the present one, by position: at most _STOPS_MAX, about evenly spaced."""

    def __init__(self) -> None:
        self._states: dict[int, Root] = {}
        self._apart = _EVENTS_AT_ONCE
        self._since_last = 0

    def passed(self, position: int, state: Root, events: int) -> None:
        """Takes note of a state, `events` after the one noted before."""
        self._since_last += events
        if self._since_last < self._apart or position in self._states:
            return
        self._since_last = 0
        self._states[position] = state
        if len(self._states) > _STOPS_MAX:
            self._states = {at: self._states[at] for at in sorted(self._states)[::2]}
            self._apart *= 2

    def before(self, until: int) -> tuple[Root, int]:
        """The last state that stands at `until` or before it, and its position."""
        after = max((position for position in self._states if position <= until), default=0)
        return self._states.get(after, ROOT.initial), after


class _Kept:
    """One root's fold and the lock that makes its readers fold once."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.folded: Folded[Root] | None = None
        self.stops = _Stops()


class Reader:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._roots: OrderedDict[str, _Kept] = OrderedDict()
        self._on_the_way: dict[str, asyncio.Task[tuple[Root, Heads]]] = {}
        self._catalog = Folded(CATALOG.initial, (0,) * store.buckets)
        self._catalog_lock = asyncio.Lock()
        self._catalog_loaded = False

    async def root(self, root: str) -> tuple[Root, Heads]:
        """The root's state as of now, and the heads it stands at. Concurrent readers share one fold."""
        kept = self._kept(root)
        async with kept.lock:
            if kept.folded is None:
                kept.folded = await self._load_root(root)
            await self._fold_root_on(root, kept.folded, kept.stops)
            return kept.folded.state, kept.folded.heads

    async def roots(self, names: Collection[str], *, within_s: float) -> dict[str, Root]:
        """The states of those roots that are folded within a time. The others are folded on all the same, and are
        there for who asks again."""
        for name in names:
            if name not in self._on_the_way:
                self._on_the_way[name] = asyncio.create_task(self._arrived(name))
        asked = {name: self._on_the_way[name] for name in names}
        if asked:
            await asyncio.wait(asked.values(), timeout=within_s)
        return {name: task.result()[0] for name, task in asked.items() if task.done()}

    async def _arrived(self, root: str) -> tuple[Root, Heads]:
        try:
            return await self.root(root)
        finally:
            del self._on_the_way[root]

    async def root_at(self, root: str, heads: Heads) -> Root:
        """The root's state as it stood at a cursor, folded on from the last state before it that is at hand."""
        until = heads[self._store.bucket_of(root)]
        stops = self._kept(root).stops
        state, after = stops.before(until)
        while after < until:
            events = await self._store.read_root(root, after=after, limit=_EVENTS_AT_ONCE)
            past = [event for event in events if event.position <= until]
            state = fold(ROOT, state, past)
            if len(past) < len(events) or not events:
                break
            after = events[-1].position
            stops.passed(after, state, len(events))
        return state

    def _kept(self, root: str) -> _Kept:
        kept = self._roots.setdefault(root, _Kept())
        self._roots.move_to_end(root)
        while len(self._roots) > _ROOTS_KEPT:
            self._roots.popitem(last=False)
        return kept

    async def catalog(self) -> Catalog:
        """What all roots come to, as of now."""
        async with self._catalog_lock:
            if not self._catalog_loaded:
                await self._load_catalog()
            target = await self._store.heads()
            while self._catalog.heads != target:
                events = await self._store.read_feed(self._catalog.heads, limit=_EVENTS_AT_ONCE, decisive=True)
                if not events:
                    self._catalog.heads = _furthest(self._catalog.heads, target)
                    break
                self._catalog.state = fold(CATALOG, self._catalog.state, events)
                self._catalog.unsaved += len(events)
                self._catalog.heads = beyond(self._catalog.heads, events)
            if self._catalog.unsaved >= self._catalog.save_after:
                await self._save(CATALOG, "catalog", self._catalog)
            return self._catalog.state

    async def _load_root(self, root: str) -> Folded[Root]:
        return await self._checkpointed(ROOT, f"root {root}")

    async def _fold_root_on(self, root: str, folded: Folded[Root], stops: _Stops) -> None:
        bucket = self._store.bucket_of(root)
        now = await self._store.heads()
        while folded.heads[bucket] < now[bucket]:
            events = await self._store.read_root(root, after=folded.heads[bucket], limit=_EVENTS_AT_ONCE)
            if not events:
                break
            folded.state = fold(ROOT, folded.state, events)
            folded.heads = _at(folded.heads, bucket, events[-1].position)
            folded.unsaved += len(events)
            stops.passed(events[-1].position, folded.state, len(events))
        folded.heads = _furthest(folded.heads, now)
        if folded.unsaved >= folded.save_after:
            await self._save(ROOT, f"root {root}", folded)

    async def _load_catalog(self) -> None:
        self._catalog = await self._checkpointed(CATALOG, "catalog")
        self._catalog_loaded = True

    async def _checkpointed(self, projection: Projection[S], name: str) -> Folded[S]:
        """The state last checkpointed, or the initial one where there is none that can be read."""
        kept = await self._store.load_checkpoint(name, projection.version)
        if kept is not None:
            with contextlib.suppress(msgspec.MsgspecError):
                heads, state = msgspec.msgpack.decode(kept.state, type=tuple[Heads, bytes])
                return Folded(await asyncio.to_thread(projection.decode, state), heads)
        return Folded(projection.initial, (0,) * self._store.buckets)

    async def _save(self, projection: Projection[S], name: str, folded: Folded[S]) -> None:
        folded.unsaved = 0
        heads, state = folded.heads, await asyncio.to_thread(projection.encode, folded.state)
        if len(state) > _CHECKPOINT_BYTES_MAX:
            folded.save_after *= 4
            return
        with contextlib.suppress(StorageError):  # a cache that could not be kept is no reason to fail a read
            checkpoint = Checkpoint(projection.version, sum(heads), msgspec.msgpack.encode((heads, state)))
            await self._store.save_checkpoint(name, checkpoint)


def _at(heads: Heads, bucket: int, position: int) -> Heads:
    return (*heads[:bucket], position, *heads[bucket + 1 :])


def _furthest(one: Heads, other: Heads) -> Heads:
    return tuple(map(max, one, other))
