"""Follows the whole log by cursor, for what is derived from all of it: the search index, the trends.

A follower gives way: it reads little at a time, rests after each batch for as long as that took, for twenty times as
long while the server is busy, and once it has caught up it lets news gather, so that many small commits are one
batch. It holds no lock, and no append waits for it. What it feeds stands at a cursor of its own, so nothing is missed
or counted twice over restarts.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

import msgspec
import structlog

from ledger.errors import StorageError
from ledger.events.model import Recorded
from ledger.store.base import Checkpoint, Heads, Store, beyond
from projections.fold import Projection, fold

S = TypeVar("S")

EVENTS_AT_ONCE = 200
SETTLE_S = 0.5
_REST_QUIET, _REST_BUSY = 1, 20
_RETRY_S_FIRST, _RETRY_S_MAX = 1.0, 60.0
_CHECKPOINT_AFTER_EVENTS = 50_000

log = structlog.get_logger()


class Consumer(Protocol):
    """What a follower feeds. It keeps the cursor together with what it made of the events."""

    name: str

    async def heads(self) -> Heads:
        """How far the log has been taken in."""
        ...

    async def take(self, events: Sequence[Recorded], heads: Heads) -> None:
        """Takes in the events up to `heads`, in position order within each bucket: all of them or none."""
        ...


class Follower:
    """One background task for one consumer, so that one that fails holds up no other."""

    def __init__(
        self,
        store: Store,
        consumer: Consumer,
        *,
        busy: Callable[[], bool] = lambda: False,
        settle_s: float = SETTLE_S,
        retry_s: float = _RETRY_S_FIRST,
    ) -> None:
        """`busy` says whether the server has something better to do right now."""
        self._store = store
        self._consumer = consumer
        self._busy = busy
        self._settle_s = settle_s
        self._retry_s = retry_s
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._unsubscribe = self._store.subscribe(lambda roots, heads: self._news.set())
        self._task = asyncio.create_task(self._run(), name=f"follower of {self._consumer.name}")

    async def stop(self) -> None:
        if self._task is None:
            return
        self._unsubscribe()
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        self._task = None

    async def _run(self) -> None:
        """Follows until it is stopped. Whatever fails is tried again, ever more seldom: the log waits."""
        retry_s = self._retry_s
        while True:
            reached: Heads | None = None
            try:
                reached = await self._consumer.heads()
                await self._follow(reached)
            except StorageError as error:
                log.warning("following failed", consumer=self._consumer.name, detail=error.detail)
            except Exception as error:
                log.exception("following failed", consumer=self._consumer.name, exc_info=error)
            got_on = reached is not None and await self._stands_beyond(reached)
            retry_s = self._retry_s if got_on else min(2 * retry_s, _RETRY_S_MAX)
            await asyncio.sleep(retry_s)

    async def _stands_beyond(self, reached: Heads) -> bool:
        with contextlib.suppress(StorageError):
            return await self._consumer.heads() != reached
        return False

    async def _follow(self, heads: Heads) -> None:
        now = asyncio.get_running_loop().time
        while True:
            self._news.clear()
            began_s = now()
            events = await self._store.read_feed(heads, limit=EVENTS_AT_ONCE)
            if not events:
                await self._news.wait()
                continue
            heads = beyond(heads, events)
            await self._consumer.take(events, heads)
            rest_s = (_REST_BUSY if self._news.is_set() or self._busy() else _REST_QUIET) * (now() - began_s)
            caught_up = len(events) < EVENTS_AT_ONCE
            await asyncio.sleep(max(rest_s, self._settle_s) if caught_up else rest_s)


class Folding(Generic[S]):
    """A consumer that folds a projection and checkpoints it in the store, now and then and when it is closed. Anybody
    may read `state` at any time, and at what heads it stands in `reached`; only its follower calls the rest."""

    def __init__(self, store: Store, projection: Projection[S]) -> None:
        self.name = projection.name
        self.state = projection.initial
        self._store = store
        self._projection = projection
        self.reached: Heads = (0,) * store.buckets
        self._loaded = False
        self._unsaved = 0

    async def heads(self) -> Heads:
        if not self._loaded:
            await self._load()
        return self.reached

    async def take(self, events: Sequence[Recorded], heads: Heads) -> None:
        self.state, self.reached = fold(self._projection, self.state, events), heads
        self._unsaved += len(events)
        if self._unsaved >= _CHECKPOINT_AFTER_EVENTS:
            await self._save()

    async def close(self) -> None:
        """Keeps what was folded, so that the next start need not read it again."""
        if self._unsaved:
            await self._save()

    async def _load(self) -> None:
        kept = await self._store.load_checkpoint(self.name, self._projection.version)
        if kept is not None:
            with contextlib.suppress(msgspec.MsgspecError):  # one that cannot be read is folded again
                heads, state = msgspec.msgpack.decode(kept.state, type=tuple[Heads, bytes])
                self.state, self.reached = await asyncio.to_thread(self._projection.decode, state), heads
        self._loaded = True

    async def _save(self) -> None:
        self._unsaved = 0
        heads, state = self.reached, await asyncio.to_thread(self._projection.encode, self.state)
        checkpoint = Checkpoint(self._projection.version, sum(heads), msgspec.msgpack.encode((heads, state)))
        with contextlib.suppress(StorageError):  # a cache that could not be kept is folded again
            await self._store.save_checkpoint(self.name, checkpoint)
