"""What can be read from the log, in which order, and in pages."""

from __future__ import annotations

import pytest

from ledger.events.model import END_SEQ
from ledger.store import cursors
from ledger.store.base import Opening, Store, Write
from tests.store.building import event, events, keys, open_session, opening, push, result, whole_feed


async def seqs_read(store: Store, **how: object) -> list[int]:
    return [read.seq for read in await store.read_stream("s", **how)]  # type: ignore[arg-type]


async def test_a_stream_is_read_in_seq_order_however_it_came_in(store: Store) -> None:
    await push(store, "s", *events(7, 2), result("done"), event(0), opening=opening())
    assert await seqs_read(store) == [-1, 0, 2, 7, END_SEQ]
    assert await seqs_read(store, from_seq=2) == [2, 7, END_SEQ]
    assert await seqs_read(store, from_seq=3, limit=1) == [7]
    assert await seqs_read(store, limit=2) == [-1, 0]


async def test_a_stream_is_read_backward_from_a_seq(store: Store) -> None:
    await push(store, "s", *events(7, 2, 0), result("done"), opening=opening())
    assert await seqs_read(store, from_seq=END_SEQ, backward=True) == [END_SEQ, 7, 2, 0, -1]
    assert await seqs_read(store, from_seq=6, backward=True, limit=2) == [2, 0]
    assert await seqs_read(store, from_seq=-1, backward=True) == [-1]


async def test_a_root_is_read_in_position_order_over_its_streams(store: Store) -> None:
    await push(store, "b", event(5), opening=opening("1", "goal/2"))
    await push(store, "elsewhere", event(0), opening=opening("1", "goal/3"))
    await push(store, "a", event(1), opening=opening("2", "goal/2"))
    await push(store, "b", event(0))
    read = await store.read_root("goal/2")
    assert keys(read) == [("b", -1), ("b", 5), ("a", -1), ("a", 1), ("b", 0)]
    assert [one.task_id for one in read] == ["1", "1", "2", "2", "1"]
    assert await store.read_root("goal/2", after=read[2].position) == read[3:]
    assert await store.read_root("goal/2", after=read[0].position, limit=2) == read[1:3]
    assert await store.read_root("goal/2", after=read[-1].position) == []


@pytest.mark.parametrize("page", [1, 2, 3, 1000])
async def test_the_feed_in_pages_is_every_event_once(store: Store, page: int) -> None:
    for task in "12345":
        await push(store, f"s{task}", *events(1, 0), opening=opening(task))
    feed = await whole_feed(store, page=page)
    assert sorted(keys(feed)) == sorted((f"s{task}", seq) for task in "12345" for seq in (-1, 0, 1))
    for bucket, head in enumerate(await store.heads()):
        assert [read.position for read in feed if read.bucket == bucket] == list(range(1, head + 1))


async def test_the_feed_behind_the_heads_is_what_came_since(store: Store) -> None:
    await push(store, "s", event(0), opening=opening())
    heads = await store.heads()
    assert await store.read_feed(heads) == []
    await push(store, "t", event(0), opening=opening("2"))
    assert keys(await store.read_feed(heads)) == [("t", -1), ("t", 0)]
    assert len(await store.read_feed(cursors.start(store.buckets), limit=3)) == 3


@pytest.mark.parametrize("page", [1, 1000])
async def test_the_decisive_feed_is_only_what_can_change_a_status(store: Store, page: int) -> None:
    pushed = [
        event(0),
        event(1, kind="waiting"),
        event(2, kind="goal.failed"),
        event(3, kind="task.requeued"),
        event(4, kind="comment"),
        result("working", 5),
        result("done"),
    ]
    await push(store, "s", *pushed, opening=opening())
    await push(store, "@task/1", event(0, kind="task.created"), event(1), opening=Opening("task/1", "1", "owner"))
    feed = await whole_feed(store, page=page, decisive=True)
    assert keys(feed) == [("s", -1), ("s", 1), ("s", 5), ("s", END_SEQ), ("@task/1", 0), ("@task/1", 1)]
    assert set(keys(feed)) < set(keys(await whole_feed(store)))


async def test_the_streams_of_a_root_come_by_name_in_pages(store: Store) -> None:
    for stream in ("b", "a", "é", "B", "@task/1"):
        await push(store, stream, opening=opening("1"))
    await push(store, "c", opening=opening("2"))
    names = [info.stream for info in await store.streams_of("task/1")]
    assert names == ["@task/1", "B", "a", "b", "é"]
    assert [info.stream for info in await store.streams_of("task/1", after="B", limit=2)] == ["a", "b"]
    assert await store.streams_of("task/1", after="é") == []
    assert (await store.streams_of("task/1"))[2] == await store.stream("a")


async def test_what_is_not_there_reads_as_nothing(store: Store) -> None:
    assert await store.stream("s") is None
    assert await store.read_stream("s") == []
    assert await store.read_root("task/1") == []
    assert await store.streams_of("task/1") == []
    assert await store.gaps("s") == []
    assert await store.losers("s") == []
    assert await store.deliveries("task/1") == []
    assert await whole_feed(store) == []
    assert await store.roots_moved(cursors.start(store.buckets)) == []


@pytest.mark.parametrize(
    ("arrived", "missing"),
    [
        ([], []),
        ([0, 1, 2], []),
        ([2], [(0, 1)]),
        ([0, 2, 3, 7, 5], [(1, 1), (4, 4), (6, 6)]),
        ([END_SEQ - 1], [(0, END_SEQ - 2)]),
        ([0, END_SEQ], []),
    ],
)
async def test_gaps_are_the_ranges_below_the_highest_seq_that_have_not_arrived(
    store: Store, arrived: list[int], missing: list[tuple[int, int]]
) -> None:
    await open_session(store)
    await push(store, "t", *events(1, 4, 6), opening=opening())
    await push(store, "s", *events(*arrived))
    assert await store.gaps("s") == missing


async def test_a_gap_that_is_filled_is_none_any_more(store: Store) -> None:
    await push(store, "s", *events(0, 4), opening=opening())
    await push(store, "s", event(2))
    assert await store.gaps("s") == [(1, 1), (3, 3)]
    assert await store.gaps("s", limit=1) == [(1, 1)]
    await push(store, "s", *events(1, 3))
    assert await store.gaps("s") == []


async def test_the_roots_that_moved_come_with_the_latest_first(store: Store) -> None:
    start = cursors.start(store.buckets)
    for task in ("1", "2", "3"):
        await open_session(store, f"s{task}", task)
    heads = await store.heads()
    await push(store, "s1", event(0))
    by_bucket = [await moved_in(store, bucket, start) for bucket in range(store.buckets)]
    assert sorted(root for roots in by_bucket for root in roots) == ["task/1", "task/2", "task/3"]
    assert by_bucket[store.bucket_of("task/1")][0] == "task/1"
    assert await store.roots_moved(heads) == ["task/1"]
    assert await store.roots_moved(await store.heads()) == []
    assert len(await store.roots_moved(start, limit=2)) == 2


async def moved_in(store: Store, bucket: int, after: tuple[int, ...]) -> list[str]:
    return [root for root in await store.roots_moved(after) if store.bucket_of(root) == bucket]


async def test_a_duplicate_moves_no_root(store: Store) -> None:
    await push(store, "s", event(0), opening=opening())
    heads = await store.heads()
    await store.append([Write("s", [event(0), event(0, '"x"')])])
    assert await store.roots_moved(heads) == []
