from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from ledger.http.page_cache import FRESH_S, PAGES_KEPT, REST_PER_COST, PageCache
from ledger.store.base import Heads


class Commits:
    """The part of a store that a page cache listens to."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[frozenset[str], Heads], None]] = []

    def subscribe(self, listener: Callable[[frozenset[str], Heads], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def commit(self, *roots: str) -> None:
        for listener in self._listeners:
            listener(frozenset(roots), (1,))


class Desk:
    """A cache, and a page that counts how often it was made."""

    def __init__(self) -> None:
        self.commits = Commits()
        self.now = 0.0
        self.cache = PageCache(self.commits, lambda: self.now)  # type: ignore[arg-type]
        self.made = 0
        self.cost = 0.0
        self.begun = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    async def make(self) -> str:
        self.made += 1
        self.begun.set()
        number = self.made
        await self.gate.wait()
        self.now += self.cost
        return f"page {number}"

    async def look(self, root: str | None = "goal/7", key: str = "/goals/7") -> str:
        return await self.cache.get((key,), root, self.make)


async def test_ten_who_look_at_once_get_one_page() -> None:
    desk = Desk()
    desk.gate.clear()
    looks = [asyncio.create_task(desk.look()) for _ in range(10)]
    await asyncio.sleep(0)
    desk.gate.set()
    assert await asyncio.gather(*looks) == ["page 1"] * 10


async def test_a_page_is_forgotten_when_its_root_moves() -> None:
    desk = Desk()
    assert await desk.look() == "page 1"
    desk.commits.commit("goal/8")
    assert await desk.look() == "page 1"
    desk.commits.commit("goal/7")
    assert await desk.look() == "page 2"


async def test_a_page_of_all_roots_is_forgotten_whatever_moves() -> None:
    desk = Desk()
    await desk.look(None)
    desk.commits.commit("task/1")
    assert await desk.look(None) == "page 2"


async def test_a_page_that_was_being_made_when_its_root_moved_is_not_given_to_who_asks_afterwards() -> None:
    desk = Desk()
    desk.gate.clear()
    early = asyncio.create_task(desk.look())
    await desk.begun.wait()
    desk.commits.commit("goal/7")
    late = asyncio.create_task(desk.look())
    await asyncio.sleep(0)
    desk.gate.set()
    assert [await early, await late] == ["page 1", "page 2"]
    assert await desk.look() == "page 2"


async def test_a_page_rests_after_its_cost_and_who_asks_meanwhile_gets_the_next_one() -> None:
    desk = Desk()
    slept: list[float] = []
    desk.cost = 0.1
    await desk.look()
    desk.commits.commit("goal/7")

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ledger.http.page_cache.asyncio.sleep", sleep)
        assert await asyncio.gather(*(desk.look() for _ in range(10))) == ["page 2"] * 10
    assert slept == [pytest.approx(0.1 * REST_PER_COST)]


async def test_a_commit_before_a_page_is_begun_does_not_put_it_off_again() -> None:
    desk = Desk()
    desk.gate.clear()
    first = asyncio.create_task(desk.look())
    await desk.begun.wait()
    desk.commits.commit("goal/7")
    second = asyncio.create_task(desk.look())
    await asyncio.sleep(0)
    desk.commits.commit("goal/7")
    third = asyncio.create_task(desk.look())
    await asyncio.sleep(0)
    desk.gate.set()
    assert await asyncio.gather(first, second, third) == ["page 1", "page 2", "page 2"]


async def test_a_page_is_kept_for_a_moment_only() -> None:
    desk = Desk()
    await desk.look()
    desk.now = FRESH_S / 2
    assert await desk.look() == "page 1"
    desk.now = FRESH_S * 2
    assert await desk.look() == "page 2"


async def test_a_reader_who_leaves_takes_the_page_from_nobody() -> None:
    desk = Desk()
    desk.gate.clear()
    first, second = asyncio.create_task(desk.look()), asyncio.create_task(desk.look())
    await asyncio.sleep(0)
    first.cancel()
    desk.gate.set()
    assert await second == "page 1"
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_a_page_that_failed_is_made_again() -> None:
    desk = Desk()

    async def fail() -> str:
        raise RuntimeError("no such goal")

    with pytest.raises(RuntimeError):
        await desk.cache.get(("/goals/7",), "goal/7", fail)
    assert await desk.look() == "page 1"


async def test_pages_nobody_asked_for_lately_make_room() -> None:
    desk = Desk()
    for number in range(PAGES_KEPT + 1):
        await desk.look(key=f"/goals/{number}")
    await desk.look(key="/goals/0")
    assert desk.made == PAGES_KEPT + 2
