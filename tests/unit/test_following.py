from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from ledger import following
from ledger.errors import StorageError
from ledger.events.model import Recorded
from ledger.following import Folding, Follower
from ledger.store.base import Heads
from ledger.store.memory import MemoryStore
from projections.trends import TRENDS
from tests.store.building import events, open_session, push

WAIT_S = 10.0


class Taking:
    """A consumer that remembers, and fails as often as it is told to."""

    name = "taking"

    def __init__(self, buckets: int = 1, failures: Sequence[Exception] = ()) -> None:
        self.taken: list[tuple[str, int]] = []
        self.batches: list[int] = []
        self._heads: Heads = (0,) * buckets
        self._failures = list(failures)
        self._changed = asyncio.Event()

    async def heads(self) -> Heads:
        return self._heads

    async def take(self, events: Sequence[Recorded], heads: Heads) -> None:
        if self._failures:
            raise self._failures.pop()
        self.taken += [(event.session_id, event.seq) for event in events]
        self.batches.append(len(events))
        self._heads = heads
        self._changed.set()

    async def until(self, heads: Heads) -> None:
        async with asyncio.timeout(WAIT_S):
            while self._heads != heads:
                self._changed.clear()
                await self._changed.wait()


def follower(store: MemoryStore, consumer: Taking) -> Follower:
    return Follower(store, consumer, settle_s=0, retry_s=0)


@pytest.mark.parametrize("buckets", [1, 3])
async def test_a_follower_takes_in_what_is_there_and_then_what_comes(buckets: int) -> None:
    store, consumer = MemoryStore(buckets=buckets), Taking(buckets)
    for n in range(5):
        await open_session(store, f"s{n}", str(n))
    following_ = follower(store, consumer)
    following_.start()
    await consumer.until(await store.heads())
    await push(store, "s3", *events(0, 1))
    await consumer.until(await store.heads())
    await following_.stop()
    assert sorted(consumer.taken) == [*((f"s{n}", -1) for n in range(4)), ("s3", 0), ("s3", 1), ("s4", -1)]


async def test_it_reads_a_little_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "EVENTS_AT_ONCE", 10)
    store, consumer = MemoryStore(), Taking()
    await open_session(store)
    await push(store, "s", *events(*range(24)))
    following_ = follower(store, consumer)
    following_.start()
    await consumer.until((25,))
    await following_.stop()
    assert consumer.batches == [10, 10, 5]


@pytest.mark.parametrize("error", [StorageError("the disk is gone"), ValueError("a fault")])
async def test_what_fails_is_tried_again_and_nothing_is_missed(error: Exception) -> None:
    store, consumer = MemoryStore(), Taking(failures=[error, error])
    await open_session(store)
    following_ = follower(store, consumer)
    following_.start()
    await consumer.until((1,))
    await following_.stop()
    assert consumer.taken == [("s", -1)]


async def test_a_stopped_follower_takes_nothing_more() -> None:
    store, consumer = MemoryStore(), Taking()
    following_ = follower(store, consumer)
    following_.start()
    await open_session(store)
    await consumer.until((1,))
    await following_.stop()
    await following_.stop()
    await push(store, "s", *events(0))
    assert consumer.taken == [("s", -1)]


@pytest.mark.parametrize("buckets", [1, 3])
async def test_a_folding_goes_on_from_what_was_kept(buckets: int) -> None:
    store = MemoryStore(buckets=buckets)
    before = Folding(store, TRENDS)
    assert await before.heads() == (0,) * buckets
    for n in range(4):
        await open_session(store, f"s{n}", str(n))
    await before.take(await store.read_feed((0,) * buckets), await store.heads())
    await before.close()
    after = Folding(store, TRENDS)
    assert await after.heads() == await store.heads()
    assert after.state == before.state != TRENDS.initial


async def test_a_folding_keeps_its_state_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "_CHECKPOINT_AFTER_EVENTS", 3)
    store = MemoryStore()
    await open_session(store)
    await push(store, "s", *events(0, 1, 2))
    folding = Folding(store, TRENDS)
    log = await store.read_feed(await folding.heads())
    await folding.take(log[:2], (2,))
    assert await store.load_checkpoint(TRENDS.name, TRENDS.version) is None
    await folding.take(log[2:], (4,))
    kept = await store.load_checkpoint(TRENDS.name, TRENDS.version)
    assert kept is not None
    assert kept.position == 4
