"""What an append does and what it reports."""

from __future__ import annotations

import pytest

from ledger.errors import StreamMoved
from ledger.events.model import END_SEQ, NO_EVENTS, OPENING_SEQ
from ledger.store.base import Delivery, Opening, Store, StreamInfo, Write
from tests.store.building import (
    Clock,
    event,
    events,
    keys,
    open_session,
    opening,
    push,
    result,
    roots_of_one_bucket,
    whole_feed,
)


async def test_a_write_reports_what_became_of_it(store: Store) -> None:
    written = await push(store, "s", *events(3, 9), opening=opening("7", "goal/2"))
    assert (written.stored, written.duplicates, written.conflicts) == (2, 0, ())
    assert (written.opened, written.high_seq) == (True, 9)
    assert (written.task_id, written.root) == ("7", "goal/2")


async def test_an_append_of_nothing_changes_nothing(store: Store) -> None:
    await open_session(store)
    heads = await store.heads()
    appended = await store.append([])
    assert (appended.writes, appended.heads) == ((), heads)
    written = await push(store, "s")
    assert (written.stored, written.opened, written.high_seq) == (0, False, -1)
    assert await store.heads() == heads


async def test_the_heads_after_an_append_say_where_the_log_stands(store: Store) -> None:
    assert await store.heads() == (0,) * store.buckets
    appended = await store.append([Write("s", events(0, 1), opening=opening())])
    assert appended.heads == await store.heads()
    assert appended.heads[store.bucket_of("task/1")] == 3
    assert sum(appended.heads) == 3


async def test_positions_are_gapless_and_in_the_order_of_the_append(store: Store) -> None:
    one, other = roots_of_one_bucket(store, 2)
    await store.append(
        [
            Write("b", events(5, 2), opening=opening("1", one)),
            Write("a", events(0), opening=opening("2", other)),
        ]
    )
    await push(store, "b", *events(2, 9, END_SEQ))
    feed = await whole_feed(store)
    assert [read.position for read in feed] == list(range(1, 8))
    assert keys(feed) == [("b", -1), ("b", 5), ("b", 2), ("a", -1), ("a", 0), ("b", 9), ("b", END_SEQ)]


async def test_duplicates_and_losers_take_no_position(store: Store) -> None:
    await push(store, "s", event(0), opening=opening())
    await push(store, "s", event(0), event(0, '"x"'))
    await push(store, "s", event(1))
    assert [read.position for read in await whole_feed(store)] == [1, 2, 3]


@pytest.mark.parametrize("seq", [0, 2**31, 2**53 + 1, END_SEQ - 1])
async def test_a_seq_may_be_any_integer_below_the_end_slot(store: Store, seq: int) -> None:
    written = await push(store, "s", event(seq), opening=opening())
    assert (written.stored, written.high_seq) == (1, seq)
    assert [read.seq for read in await store.read_stream("s", from_seq=0)] == [seq]


async def test_the_end_slot_does_not_count_as_the_highest_seq(store: Store) -> None:
    written = await push(store, "s", result("done"), opening=opening())
    assert written.high_seq == -1
    assert (await push(store, "s", event(4))).high_seq == 4
    info = await store.stream("s")
    assert info is not None
    assert (info.high_seq, info.events) == (4, 3)


async def test_the_highest_seq_never_falls(store: Store) -> None:
    assert (await push(store, "s", event(9), opening=opening())).high_seq == 9
    assert (await push(store, "s", event(3))).high_seq == 9
    assert (await push(store, "s", event(9))).high_seq == 9


async def test_a_stream_is_described_as_it_was_opened(store: Store, clock: Clock) -> None:
    await push(store, "s", *events(1, 0), opening=opening("7", "goal/2", saddle="beta", contiguous=True))
    clock.tick()
    await push(store, "s", event(1))
    assert await store.stream("s") == StreamInfo(
        stream="s",
        task_id="7",
        root="goal/2",
        saddle="beta",
        contiguous=True,
        high_seq=1,
        events=3,
        last_recorded_at=clock.now - 1,
    )


async def test_a_later_opening_under_the_same_task_changes_nothing(store: Store) -> None:
    await open_session(store, "s", "7", "goal/2")
    before = await store.stream("s")
    again = Opening("goal/2", "7", "alpha", contiguous=True)
    written = await push(store, "s", opening=again)
    assert (written.opened, written.conflicts) == (False, ())
    assert await store.stream("s") == before


async def test_a_stream_of_the_ledger_needs_no_event_to_be_opened(store: Store) -> None:
    own = Opening("goal/2", None, "owner")
    written = await push(store, "@goal/2", opening=own)
    assert (written.opened, written.stored, written.high_seq, written.task_id) == (True, 0, -1, None)
    info = await store.stream("@goal/2")
    assert info is not None
    assert (info.events, info.high_seq, info.task_id) == (0, -1, None)
    assert await store.heads() == (0,) * store.buckets
    await store.append([Write("@goal/2", [event(0, kind="goal.created")], expected_seq=OPENING_SEQ)])
    [created] = await store.read_root("goal/2")
    assert (created.session_id, created.task_id) == ("@goal/2", None)


async def test_a_conditional_append_goes_through_where_the_stream_stands_as_expected(store: Store) -> None:
    own = Opening("goal/2", None, "owner")
    await store.append([Write("@goal/2", events(0), opening=own, expected_seq=NO_EVENTS)])
    await store.append([Write("@goal/2", events(1, 2), expected_seq=0)])
    await store.append([Write("@goal/2", events(3), expected_seq=2)])
    assert [read.seq for read in await store.read_stream("@goal/2")] == [0, 1, 2, 3]


async def test_a_session_with_nothing_but_its_opening_is_expected_at_its_opening(store: Store) -> None:
    await open_session(store)
    await store.append([Write("s", events(0), expected_seq=OPENING_SEQ)])
    assert [read.seq for read in await store.read_stream("s")] == [-1, 0]


async def test_a_stream_that_is_not_there_stands_where_nothing_was_pushed(store: Store) -> None:
    await store.append([Write("s", events(0), opening=opening(), expected_seq=OPENING_SEQ)])
    assert [read.seq for read in await store.read_stream("s")] == [-1, 0]
    with pytest.raises(StreamMoved):
        await store.append([Write("t", events(1), opening=opening("2"), expected_seq=0)])
    assert await store.stream("t") is None


async def test_an_end_in_its_slot_does_not_move_what_is_expected(store: Store) -> None:
    await push(store, "s", event(4), result("done"), opening=opening())
    await store.append([Write("s", events(5), expected_seq=4)])
    assert [read.seq for read in await store.read_stream("s", from_seq=5)] == [5, END_SEQ]


async def test_deliveries_are_counted_by_what_became_of_their_events(store: Store) -> None:
    await push(store, "s", *events(0, 1, 5), opening=opening())
    await push(store, "s", event(3), event(1), event(0, '"x"'))
    await push(store, "s", result("done"), event(6))
    await push(store, "s", result("done"), result("failed"))
    assert await store.deliveries("task/1") == [
        Delivery("s", deliveries=4, duplicates=2, conflicts=2, late=1, results_repeated=2)
    ]


async def test_an_event_is_late_below_a_seq_of_its_own_chunk_too(store: Store) -> None:
    await push(store, "s", *events(2, 0, 1, 3), opening=opening())
    [delivery] = await store.deliveries("task/1")
    assert delivery.late == 2


async def test_openings_count_in_no_delivery(store: Store) -> None:
    await open_session(store)
    assert await store.deliveries("task/1") == []
    await push(store, "s", event(0), opening=opening())
    await push(store, "s", event(1), opening=opening(model="other"))
    assert await store.deliveries("task/1") == [Delivery("s", deliveries=2)]


async def test_deliveries_are_told_for_one_root_by_stream(store: Store) -> None:
    for stream, task in [("b", "1"), ("a", "1"), ("c", "2")]:
        await push(store, stream, event(0), opening=opening(task))
    assert [delivery.stream for delivery in await store.deliveries("task/1")] == ["a", "b"]
    assert await store.deliveries("task/3") == []
