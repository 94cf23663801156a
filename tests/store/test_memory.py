from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from ledger.store.base import Store, Write
from ledger.store.memory import MemoryStore
from tests.store.building import Clock, event, opening
from tests.store.suite import *  # noqa: F403


@pytest.fixture(params=[1, 3], ids=["one bucket", "three buckets"])
def make_store(request: pytest.FixtureRequest, clock: Clock) -> Callable[[], Awaitable[Store]]:
    async def make() -> Store:
        return MemoryStore(clock, request.param)

    return make


async def test_the_writes_of_one_append_must_lie_in_one_bucket(clock: Clock) -> None:
    store = MemoryStore(clock, buckets=64)
    one, other = (
        "task/1",
        next(root for n in range(99) if store.bucket_of(root := f"task/{n}") != store.bucket_of("task/1")),
    )
    writes = [Write("s", [event(0)], opening("1", one)), Write("t", [event(0)], opening("2", other))]
    with pytest.raises(ValueError, match="several buckets"):
        await store.append(writes)
    assert await store.stream("s") is None


def test_a_root_lies_in_the_same_bucket_in_every_ledger() -> None:
    assert [MemoryStore(buckets=16).bucket_of(root) for root in ("goal/1", "goal/2", "task/1")] == [2, 3, 2]
