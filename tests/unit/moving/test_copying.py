from __future__ import annotations

from pathlib import Path

import pytest

from ledger.errors import LedgerDamaged, StorageError
from ledger.events.model import Recorded
from ledger.moving import copy_ledger
from ledger.moving.copying import PAGE_EVENTS
from ledger.store.base import Checkpoint, Store, Token, Write
from ledger.store.memory import MemoryStore
from ledger.store.sqlite import SqliteStore
from ledger.store.verifying import verify
from tests.store.building import Clock, event, events, opening, push, whole_feed


async def fill(store: Store) -> None:
    """Sessions of three tasks that interleave, late events, conflicts, and a token."""
    for seq in (3, 0, 1):
        for task in "123":
            await push(store, f"s{task}", event(seq, at=seq), opening=opening(task, contiguous=True))
            await push(store, f"s{task}", event(seq, '"another"'))
    await store.put_token(Token("t", "saddle", "alpha", b"\x01" * 32, created_at=1))


async def by_root(store: Store) -> dict[str, list[tuple[object, ...]]]:
    told: dict[str, list[tuple[object, ...]]] = {}
    for one in await whole_feed(store):
        told.setdefault(one.root, []).append((one.session_id, one.seq, one.payload, one.at, one.recorded_at))
    return told


@pytest.mark.parametrize(("buckets", "into"), [(1, 3), (3, 1), (2, 2)])
async def test_a_copy_tells_the_same_whatever_the_number_of_buckets(buckets: int, into: int) -> None:
    source, target = MemoryStore(Clock(), buckets), MemoryStore(buckets=into)
    await fill(source)
    copied = await copy_ledger(source, target)
    assert await by_root(target) == await by_root(source)
    assert (copied.imported.stored, copied.imported.losers, copied.roots, copied.events) == (12, 9, 3, 12)
    assert await target.losers("s1") == await source.losers("s1")
    assert await target.stream("s1") == await source.stream("s1")
    assert await target.tokens() == await source.tokens()
    assert (await verify(target)).ok


async def test_a_copy_into_as_many_buckets_keeps_every_place(tmp_path: Path) -> None:
    source = MemoryStore(Clock())
    await fill(source)
    target = await SqliteStore.open(tmp_path / "copy.db")
    await copy_ledger(source, target)
    assert await whole_feed(target) == await whole_feed(source)
    await target.close()


async def test_a_second_copy_brings_what_has_come_since_and_reads_no_more() -> None:
    source, target = Reading(Clock()), MemoryStore()
    await fill(source)
    await copy_ledger(source, target)
    await push(source, "s1", event(9))
    await push(source, "s1", event(0, '"a third"'))
    source.read = 0
    copied = await copy_ledger(source, target)
    assert source.read == 1 + copied.events  # what is new, and all of it once more to compare
    assert (copied.imported.stored, copied.imported.duplicates) == (1, 0)
    assert await by_root(target) == await by_root(source)
    assert len(await target.losers("s1")) == 4


class Reading(MemoryStore):
    read = 0

    async def read_feed(self, *args: object, **how: object) -> list[Recorded]:
        found = await super().read_feed(*args, **how)  # type: ignore[arg-type]
        self.read += len(found)
        return found


class Failing(MemoryStore):
    """Keeps only so many pages of a copy."""

    pages_left = 2

    async def save_checkpoint(self, name: str, checkpoint: Checkpoint) -> None:
        if not self.pages_left:
            raise StorageError("the target has gone")
        self.pages_left -= 1
        await super().save_checkpoint(name, checkpoint)


async def test_a_copy_that_was_broken_off_goes_on_where_it_was() -> None:
    source, target = Reading(Clock()), Failing()
    await push(source, "s", *events(*range(4 * PAGE_EVENTS)), opening=opening())
    with pytest.raises(StorageError):
        await copy_ledger(source, target)
    target.pages_left = 99
    source.read = 0
    copied = await copy_ledger(source, target)
    assert source.read - copied.events == 2 * PAGE_EVENTS + 1
    assert await by_root(target) == await by_root(source)
    assert copied.imported.duplicates == PAGE_EVENTS  # the page that was stored and not noted


async def test_a_target_that_tells_something_else_is_found_out() -> None:
    source, target = MemoryStore(Clock()), MemoryStore()
    await fill(source)
    await push(target, "other", event(0), opening=opening("1"))
    with pytest.raises(LedgerDamaged, match="task/1"):
        await copy_ledger(source, target)


async def test_what_comes_while_a_copy_runs_is_left_for_the_next() -> None:
    class Growing(MemoryStore):
        async def read_feed(self, *args: object, **how: object) -> list[Recorded]:
            await self.append(
                [Write("s1", [event(100 + len(self._log))]), Write("s2", [event(0, f'"{self._heads()}"')])]
            )
            return await super().read_feed(*args, **how)  # type: ignore[arg-type]

    source, target = Growing(Clock()), MemoryStore()
    await fill(source)
    copied = await copy_ledger(source, target)
    assert (copied.imported.stored, copied.events) == (12, 12)
    assert (await copy_ledger(source, target)).imported.stored > 0


async def test_progress_comes_to_the_end() -> None:
    source, target, told = MemoryStore(Clock(), 3), MemoryStore(), list[int]()
    await fill(source)
    await copy_ledger(source, target, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 2 * sum(await source.heads())
