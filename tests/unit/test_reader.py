from __future__ import annotations

import asyncio
from functools import cache

import pytest

from ledger.events.model import Recorded
from ledger.reader import Reader
from ledger.store.base import Heads
from projections.fold import fold
from projections.goal import ROOT
from tests.unit.projections.story import Story


class Log:
    """The part of a store that a reader of roots asks: one bucket, and a count of the events it gave."""

    buckets = 1

    def __init__(self, events: list[Recorded]) -> None:
        self.events = events
        self.given = 0
        self.open = asyncio.Event()
        self.open.set()

    def bucket_of(self, root: str) -> int:
        return 0

    async def heads(self) -> Heads:
        return (len(self.events),)

    async def read_root(self, root: str, *, after: int = 0, limit: int = 1000) -> list[Recorded]:
        await self.open.wait()
        found = [event for event in self.events[after:] if event.root == root][:limit]
        self.given += len(found)
        return found

    async def load_checkpoint(self, name: str, version: str) -> None:
        return None


@cache
def long_story(events: int) -> Story:
    """For reading: it is told once."""
    story = Story().started_goal().opened("a", "1")
    for seq in range(events):
        story.comment("a", seq, f"Step {seq}.")
    return story


async def test_a_root_as_it_stood_is_the_fold_of_what_was_there() -> None:
    events = long_story(3000).events
    reader = Reader(Log(events))  # type: ignore[arg-type]
    await reader.root("goal/7")
    for position in (0, 1, 2, 499, 500, 501, 1777, 3000, 3004):
        expected = fold(ROOT, ROOT.initial, events[:position])
        assert await reader.root_at("goal/7", (position,)) == expected


async def test_looking_back_folds_little_once_the_root_was_folded() -> None:
    log = Log(long_story(20_000).events)
    reader = Reader(log)  # type: ignore[arg-type]
    await reader.root("goal/7")
    log.given = 0
    for position in range(1000, 20_000, 1000):
        await reader.root_at("goal/7", (position,))
    assert log.given < 19 * 1500


async def test_looking_back_twice_without_a_fold_at_hand_folds_from_the_start_once() -> None:
    log = Log(long_story(20_000).events)
    reader = Reader(log)  # type: ignore[arg-type]
    await reader.root_at("goal/7", (20_000,))
    log.given = 0
    await reader.root_at("goal/7", (19_000,))
    assert log.given <= 1000


async def test_of_several_roots_those_that_take_too_long_are_left_for_another_time() -> None:
    story = Story().started_goal("7", "1").started_goal("8", "2")
    log = Log(story.events)
    reader = Reader(log)  # type: ignore[arg-type]
    await reader.root("goal/7")
    log.open.clear()
    found = await reader.roots(["goal/7", "goal/8"], within_s=0.01)
    assert list(found) == ["goal/7"]
    log.open.set()
    assert set(await reader.roots(["goal/7", "goal/8"], within_s=5)) == {"goal/7", "goal/8"}


async def test_a_root_that_cannot_be_read_says_so_to_who_asks_for_several() -> None:
    log = Log(Story().started_goal().events)
    reader = Reader(log)  # type: ignore[arg-type]

    async def fail(*_: object, **__: object) -> list[Recorded]:
        raise RuntimeError("the disk is gone")

    log.read_root = fail  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="the disk is gone"):
        await reader.roots(["goal/7"], within_s=5)
