"""Reads a root's new events and folds them on. What was folded is kept, so a read costs what is new since the last.

What is kept here and what is checkpointed in the store are caches: dropping them changes no answer.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from typing import Generic, TypeVar

import msgspec

from ledger.errors import StorageError
from ledger.store.base import Checkpoint, Heads, Store
from projections.catalog import CATALOG, Catalog
from projections.fold import Projection, fold
from projections.goal import ROOT, Root

S = TypeVar("S")

_EVENTS_AT_ONCE = 500  # folded before others get their turn
_CHECKPOINT_AFTER_EVENTS = 20_000
_CHECKPOINT_BYTES_MAX = 4 * 2**20  # a larger state takes longer to decode than its events to fold
_ROOTS_KEPT = 500


class Folded(msgspec.Struct, Generic[S]):
    """A state, the heads it stands at, how many events were folded since it was last checkpointed, and after how many
    it is again."""

    state: S
    heads: Heads
    unsaved: int = 0
    save_after: int = _CHECKPOINT_AFTER_EVENTS


class _Kept:
    """One root's fold and the lock that makes its readers fold once."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.folded: Folded[Root] | None = None


class Reader:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._roots: OrderedDict[str, _Kept] = OrderedDict()
        self._catalog = Folded(CATALOG.initial, (0,) * store.buckets)
        self._catalog_lock = asyncio.Lock()
        self._catalog_loaded = False

    async def root(self, root: str) -> tuple[Root, Heads]:
        """The root's state as of now, and the heads it stands at. Concurrent readers share one fold."""
        kept = self._roots.setdefault(root, _Kept())
        self._roots.move_to_end(root)
        while len(self._roots) > _ROOTS_KEPT:
            self._roots.popitem(last=False)
        async with kept.lock:
            if kept.folded is None:
                kept.folded = await self._load_root(root)
            await self._fold_root_on(root, kept.folded)
            return kept.folded.state, kept.folded.heads

    async def root_at(self, root: str, heads: Heads) -> Root:
        """The root's state as it stood at a cursor, folded from the start."""
        state, after = ROOT.initial, 0
        until = heads[self._store.bucket_of(root)]
        while after < until:
            events = await self._store.read_root(root, after=after, limit=_EVENTS_AT_ONCE)
            past = [event for event in events if event.position <= until]
            state = fold(ROOT, state, past)
            if len(past) < len(events) or not events:
                break
            after = events[-1].position
        return state

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
                reached = list(self._catalog.heads)
                for event in events:
                    reached[event.bucket] = max(reached[event.bucket], event.position)
                self._catalog.heads = tuple(reached)
            if self._catalog.unsaved >= self._catalog.save_after and self._store.buckets == 1:
                await self._save(CATALOG, "catalog", self._catalog, self._catalog.heads[0])
            return self._catalog.state

    async def _load_root(self, root: str) -> Folded[Root]:
        start = (0,) * self._store.buckets
        state, position = await self._checkpointed(ROOT, f"root {root}")
        return Folded(state, _at(start, self._store.bucket_of(root), position))

    async def _fold_root_on(self, root: str, folded: Folded[Root]) -> None:
        bucket = self._store.bucket_of(root)
        now = await self._store.heads()
        while True:
            events = await self._store.read_root(root, after=folded.heads[bucket], limit=_EVENTS_AT_ONCE)
            if not events:
                break
            folded.state = fold(ROOT, folded.state, events)
            folded.heads = _at(folded.heads, bucket, events[-1].position)
            folded.unsaved += len(events)
        folded.heads = _furthest(folded.heads, now)
        if folded.unsaved >= folded.save_after:
            await self._save(ROOT, f"root {root}", folded, folded.heads[bucket])

    async def _load_catalog(self) -> None:
        if self._store.buckets == 1:
            state, position = await self._checkpointed(CATALOG, "catalog")
            self._catalog = Folded(state, (position,))
        self._catalog_loaded = True

    async def _checkpointed(self, projection: Projection[S], name: str) -> tuple[S, int]:
        """The state last checkpointed and its position, or the initial one where there is none that can be read."""
        kept = await self._store.load_checkpoint(name, projection.version)
        if kept is not None:
            with contextlib.suppress(msgspec.MsgspecError):
                return await asyncio.to_thread(projection.decode, kept.state), kept.position
        return projection.initial, 0

    async def _save(self, projection: Projection[S], name: str, folded: Folded[S], position: int) -> None:
        folded.unsaved = 0
        state = await asyncio.to_thread(projection.encode, folded.state)
        if len(state) > _CHECKPOINT_BYTES_MAX:
            folded.save_after *= 4
            return
        with contextlib.suppress(StorageError):  # a cache that could not be kept is no reason to fail a read
            await self._store.save_checkpoint(name, Checkpoint(projection.version, position, state))


def _at(heads: Heads, bucket: int, position: int) -> Heads:
    return (*heads[:bucket], position, *heads[bucket + 1 :])


def _furthest(one: Heads, other: Heads) -> Heads:
    return tuple(map(max, one, other))
