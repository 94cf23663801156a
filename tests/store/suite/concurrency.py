"""Many at once: receipts add up, one race has one winner, and a reader sees every event once."""

from __future__ import annotations

import asyncio

from ledger.errors import StreamMoved
from ledger.events.model import END_SEQ, NO_EVENTS, Recorded
from ledger.store import cursors
from ledger.store.base import Opening, Store, Write, Written
from ledger.store.verifying import verify
from tests.store.building import event, keys, opening, push, result, whole_feed

APPENDERS = 16
CHUNKS, CHUNK = 5, 7


async def _push_in_chunks(store: Store, stream: str, task: str) -> list[Written]:
    written = []
    for start in range(0, CHUNKS * CHUNK, CHUNK):
        chunk = [event(seq) for seq in range(start, start + CHUNK)]
        written.append(await push(store, stream, *chunk, opening=opening(task)))
    return written


async def _assert_gapless(store: Store) -> list[Recorded]:
    feed = await whole_feed(store, page=50)
    for bucket, head in enumerate(await store.heads()):
        assert [read.position for read in feed if read.bucket == bucket] == list(range(1, head + 1))
    return feed


async def test_concurrent_appenders_of_disjoint_chunks_are_all_stored(store: Store) -> None:
    written = await asyncio.gather(*[_push_in_chunks(store, f"s{n}", str(n % 4)) for n in range(APPENDERS)])
    assert all((one.stored, one.duplicates) == (CHUNK, 0) for many in written for one in many)
    feed = await _assert_gapless(store)
    assert sorted(keys(feed)) == sorted((f"s{n}", seq) for n in range(APPENDERS) for seq in range(-1, CHUNKS * CHUNK))
    assert (await verify(store)).ok


async def test_concurrent_appenders_of_identical_chunks_store_each_event_once(store: Store) -> None:
    written = await asyncio.gather(*[_push_in_chunks(store, "s", "1") for _ in range(APPENDERS)])
    receipts = [one for many in written for one in many]
    assert sum(one.opened for one in receipts) == 1
    assert sum(one.stored for one in receipts) == CHUNKS * CHUNK
    assert sum(one.duplicates for one in receipts) == (APPENDERS - 1) * CHUNKS * CHUNK
    assert keys(await _assert_gapless(store)) == [("s", seq) for seq in range(-1, CHUNKS * CHUNK)]
    [delivery] = await store.deliveries("task/1")
    assert (delivery.deliveries, delivery.duplicates) == (
        APPENDERS * CHUNKS,
        (APPENDERS - 1) * CHUNKS * CHUNK,
    )
    assert (await verify(store)).ok


async def test_of_different_ends_pushed_at_once_one_wins_and_the_others_are_kept(store: Store) -> None:
    await push(store, "s", opening=opening())
    ends = [result("failed", summary=f"reason {n}") for n in range(APPENDERS)]
    written = await asyncio.gather(*[push(store, "s", end) for end in ends])
    assert sorted(one.conflicts for one in written) == [(), *[(END_SEQ,)] * (APPENDERS - 1)]
    [won] = await store.read_stream("s", from_seq=END_SEQ)
    losers = {loser.payload for loser in await store.losers("s")}
    assert {won.payload} | losers == {end.payload for end in ends}
    assert len(losers) == APPENDERS - 1


async def test_of_conditional_appends_at_once_exactly_one_wins(store: Store) -> None:
    own = Opening("task/1", "1", "owner")
    await store.append([Write("@task/1", [event(0)], opening=own, expected_seq=NO_EVENTS)])
    claims = [Write("@task/1", [event(1, f'"{n}"')], expected_seq=0) for n in range(APPENDERS)]
    outcomes = await asyncio.gather(*[store.append([claim]) for claim in claims], return_exceptions=True)
    lost = [outcome for outcome in outcomes if isinstance(outcome, StreamMoved)]
    assert len(lost) == APPENDERS - 1
    assert {error.last_seq for error in lost} == {1}
    assert [read.seq for read in await store.read_stream("@task/1")] == [0, 1]
    assert await store.losers("@task/1") == []


async def test_a_conditional_append_that_lost_fails_nobody_who_came_with_it(store: Store) -> None:
    await push(store, "s", event(0), event(1), opening=opening())
    moved = [store.append([Write("s", [event(1, f'"{n}"')], expected_seq=0)]) for n in range(APPENDERS)]
    others = [push(store, "s", event(n)) for n in range(2, 2 + APPENDERS)]
    pairs = zip(moved, others, strict=True)
    outcomes = await asyncio.gather(*[one for pair in pairs for one in pair], return_exceptions=True)
    assert [type(outcome) for outcome in outcomes[::2]] == [StreamMoved] * APPENDERS
    assert [outcome.stored for outcome in outcomes[1::2] if isinstance(outcome, Written)] == [1] * APPENDERS


async def test_of_streams_made_at_once_exactly_one_is_made(store: Store) -> None:
    own = Opening("goal/1", None, "owner")
    makers = [Write("@goal/1", [event(0, f'"{n}"')], own, expected_seq=NO_EVENTS) for n in range(APPENDERS)]
    outcomes = await asyncio.gather(*[store.append([maker]) for maker in makers], return_exceptions=True)
    assert sum(isinstance(outcome, StreamMoved) for outcome in outcomes) == APPENDERS - 1
    assert len(await whole_feed(store)) == 1


async def test_appends_are_decided_in_the_order_of_their_calls(store: Store) -> None:
    own = Opening("task/1", "1", "owner")
    openings = [push(store, f"s{n}", event(0), opening=own) for n in range(20)]
    await asyncio.gather(
        *openings, push(store, "s3", event(1)), push(store, "s19", event(1)), push(store, "s3", event(2))
    )
    late = [("s3", 1), ("s19", 1), ("s3", 2)]
    assert keys(await whole_feed(store)) == [*((f"s{n}", 0) for n in range(20)), *late]


async def test_a_reader_that_pages_while_writers_commit_sees_every_event_once(store: Store) -> None:
    seen: list[Recorded] = []
    moved, written = asyncio.Event(), asyncio.Event()
    store.subscribe(lambda roots, heads: moved.set())

    async def read() -> None:
        heads = list(cursors.start(store.buckets))
        while True:
            moved.clear()
            last = written.is_set()
            while page := await store.read_feed(tuple(heads), limit=3):
                for recorded in page:
                    assert recorded.position == heads[recorded.bucket] + 1
                    heads[recorded.bucket] = recorded.position
                seen.extend(page)
            if last:
                return
            await moved.wait()

    reader = asyncio.create_task(read())
    await asyncio.gather(*[_push_in_chunks(store, f"s{n}", str(n)) for n in range(8)])
    written.set()
    moved.set()
    await asyncio.wait_for(reader, 30)
    assert sorted(keys(seen)) == sorted((f"s{n}", seq) for n in range(8) for seq in range(-1, CHUNKS * CHUNK))
