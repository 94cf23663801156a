"""First write wins: what is a duplicate, what is in conflict, and that all content is kept byte for byte."""

from __future__ import annotations

import asyncio

import pytest

from ledger.events.model import END_SEQ, OPENING_SEQ, NewEvent
from ledger.store.base import Store
from tests.store.building import Clock, event, events, keys, open_session, opening, push, result, whole_feed


async def test_an_event_is_read_back_as_it_was_written(store: Store, clock: Clock) -> None:
    await open_session(store, "s", "7", "goal/3")
    recorded_at = clock.tick()
    new = event(4, '{ "text" : "x" }', kind="strange.kind", actor="a", at=12, extra=b'{"more":1}')
    await push(store, "s", new)
    [read] = await store.read_stream("s", from_seq=0)
    assert (read.session_id, read.seq, read.kind, read.actor, read.at) == ("s", 4, "strange.kind", "a", 12)
    assert (read.payload, read.digest, read.extra) == (new.payload, new.digest, b'{"more":1}')
    assert (read.task_id, read.root, read.recorded_at) == ("7", "goal/3", recorded_at)
    assert (read.bucket, read.position) == (store.bucket_of("goal/3"), 2)


async def test_an_event_without_time_or_extra_fields_has_none(store: Store) -> None:
    await push(store, "s", event(0), opening=opening())
    [read] = await store.read_stream("s", from_seq=0)
    assert read.at is None
    assert read.extra is None


async def test_an_event_carried_over_keeps_the_time_it_was_recorded(store: Store, clock: Clock) -> None:
    await push(store, "s", event(0, recorded_at=77), opening=opening())
    [opened, carried] = await store.read_stream("s")
    assert (opened.recorded_at, carried.recorded_at) == (clock.now, 77)
    info = await store.stream("s")
    assert info is not None
    assert info.last_recorded_at == 77


async def test_the_same_chunk_again_is_all_duplicates_and_moves_nothing(store: Store, clock: Clock) -> None:
    await push(store, "s", *events(0, 1, 2), opening=opening())
    before, heads = await whole_feed(store), await store.heads()
    clock.tick()
    written = await push(store, "s", *events(2, 1, 0))
    assert (written.stored, written.duplicates, written.conflicts) == (0, 3, ())
    assert await whole_feed(store) == before
    assert await store.heads() == heads


@pytest.mark.parametrize(
    ("first", "again"),
    [
        ('{"a":1,"b":[2,{}]}', '{ "b": [2, {}],\n "a": 1 }'),
        ('{"a":"é/"}', '{"a":"\\u00e9\\/"}'),
        ('{"a":1}', '{"a":1.0}'),
        ('{"a":10000000000000000000000000000000000000000}', '{"a":1e40}'),
        ('{"a":1e999}', '{"a":10e998}'),
        ('{"a":1,"a":2}', '{"a":2}'),
    ],
)
async def test_another_spelling_of_the_same_payload_is_a_duplicate(store: Store, first: str, again: str) -> None:
    await push(store, "s", event(0, first), opening=opening())
    written = await push(store, "s", event(0, again))
    assert (written.stored, written.duplicates, written.conflicts) == (0, 1, ())
    [read] = await store.read_stream("s", from_seq=0)
    assert read.payload == first.encode()


@pytest.mark.parametrize(
    "other",
    [
        event(0, '{"a":2}'),
        event(0, '{"a":true}'),
        event(0, '{"a":"1"}'),
        event(0, '{"a":1,"b":null}'),
        event(0, '{"a":1}', kind="comment"),
        event(0, '{"a":1}', actor="another"),
        event(0, '{"a":1.0}', actor="another"),
    ],
)
async def test_other_content_in_a_slot_that_is_taken_loses_and_is_kept(
    store: Store, clock: Clock, other: NewEvent
) -> None:
    await push(store, "s", event(0, '{"a":1}'), opening=opening())
    received_at = clock.tick()
    written = await push(store, "s", other)
    assert (written.stored, written.duplicates, written.conflicts) == (0, 0, (0,))
    [first] = await store.read_stream("s", from_seq=0)
    assert (first.kind, first.actor, first.payload) == ("message", "agent", b'{"a":1}')
    [loser] = await store.losers("s")
    assert (loser.stream, loser.seq, loser.received_at) == ("s", 0, received_at)
    assert (loser.kind, loser.actor, loser.payload) == (other.kind, other.actor, other.payload)
    assert (loser.digest, loser.at) == (other.digest, other.at)


async def test_integers_that_differ_only_beyond_a_double_are_in_conflict(store: Store) -> None:
    await push(store, "s", event(0, '{"a":9007199254740992}'), opening=opening())
    assert (await push(store, "s", event(0, '{"a":9007199254740993}'))).conflicts == (0,)


async def test_another_time_or_other_extra_fields_are_no_other_content(store: Store) -> None:
    await push(store, "s", event(0, at=1, extra=b"{}"), opening=opening())
    written = await push(store, "s", event(0, at=2, extra=b'{"x":1}'))
    assert (written.duplicates, written.conflicts) == (1, ())
    [read] = await store.read_stream("s", from_seq=0)
    assert (read.at, read.extra) == (1, b"{}")


async def test_a_loser_that_comes_again_is_in_conflict_again_and_kept_once(store: Store, clock: Clock) -> None:
    await push(store, "s", event(0), opening=opening())
    first_lost = clock.tick()
    assert (await push(store, "s", event(0, '"x"'))).conflicts == (0,)
    clock.tick()
    assert (await push(store, "s", event(0, '"y"'), event(0, '"x"'))).conflicts == (0, 0)
    losers = await store.losers("s")
    assert [(loser.payload, loser.received_at) for loser in losers] == [
        (b'"x"', first_lost),
        (b'"y"', clock.now),
    ]


async def test_a_loser_carried_over_keeps_the_time_it_was_received(store: Store) -> None:
    await push(store, "s", event(0), opening=opening())
    await push(store, "s", event(0, '"x"', at=3, recorded_at=77))
    [loser] = await store.losers("s")
    assert (loser.at, loser.received_at) == (3, 77)


async def test_losers_come_by_seq_and_no_more_than_asked_for(store: Store) -> None:
    await push(store, "s", *events(0, 1, 2), opening=opening())
    await push(store, "s", *[event(seq, '"x"') for seq in (2, 0, 1)])
    assert [loser.seq for loser in await store.losers("s")] == [0, 1, 2]
    assert [loser.seq for loser in await store.losers("s", limit=2)] == [0, 1]


async def test_a_key_that_stands_twice_in_one_chunk_is_judged_like_two_deliveries(store: Store) -> None:
    chunk = [event(5, '{"a":1}'), event(5, '{"a": 1}'), event(5, '{"a":2}'), event(6)]
    written = await push(store, "s", *chunk, opening=opening())
    assert (written.stored, written.duplicates, written.conflicts) == (2, 1, (5,))
    [kept, _] = await store.read_stream("s", from_seq=0)
    assert kept.payload == b'{"a":1}'
    assert [loser.payload for loser in await store.losers("s")] == [b'{"a":2}']


async def test_the_same_seq_in_two_sessions_is_two_events(store: Store) -> None:
    await push(store, "s", event(0), opening=opening())
    written = await push(store, "t", event(0), opening=opening())
    assert (written.stored, written.duplicates) == (1, 0)
    assert keys(await store.read_root("task/1")) == [("s", -1), ("s", 0), ("t", -1), ("t", 0)]


async def test_an_opening_repeated_stores_nothing(store: Store) -> None:
    first = await open_session(store)
    again = await open_session(store)
    assert (first.opened, first.stored, first.duplicates) == (True, 0, 0)
    assert (again.opened, again.stored, again.duplicates, again.conflicts) == (False, 0, 0, ())
    assert keys(await whole_feed(store)) == [("s", OPENING_SEQ)]


async def test_an_opening_with_other_content_is_in_conflict_and_its_events_are_stored(store: Store) -> None:
    await open_session(store)
    written = await push(store, "s", event(0), opening=opening(model="other"))
    assert (written.opened, written.stored, written.conflicts) == (False, 1, (OPENING_SEQ,))
    [loser] = await store.losers("s")
    assert loser.seq == OPENING_SEQ
    assert b'"other"' in loser.payload
    [opened, _] = await store.read_stream("s")
    assert b'"m"' in opened.payload


@pytest.mark.parametrize(
    "payload",
    [
        '{"text":"a\\u0000b"}',
        '{"a":1, "a":2}',
        '{"a":9007199254740993,"b":9223372036854775808,"c":18446744073709551616}',
        '{"a":10000000000000000000000000000000000000000,"b":1e999,"c":-0.0,"d":1E+2}',
        '{"text":"\U0001f600\u202e\ufeff"}',
        "[" * 200 + "]" * 200,
        '"text"',
        "null",
    ],
)
async def test_a_payload_is_kept_byte_for_byte(store: Store, payload: str) -> None:
    new = event(0, payload)
    await push(store, "s", new, opening=opening())
    assert (await push(store, "s", new)).duplicates == 1
    [read] = await store.read_stream("s", from_seq=0)
    assert read.payload == payload.encode()


async def test_a_payload_of_four_mebibytes_is_kept(store: Store) -> None:
    payload = '"' + "x" * (4 * 2**20 - 2) + '"'
    await push(store, "s", event(0, payload), opening=opening())
    [read] = await store.read_stream("s", from_seq=0)
    assert read.payload == payload.encode()


async def test_a_failure_repeated_115_times_is_one_row(store: Store) -> None:
    await open_session(store)
    written = [await push(store, "s", result("failed", summary="no disk")) for _ in range(115)]
    assert (sum(one.stored for one in written), sum(one.duplicates for one in written)) == (1, 114)
    assert keys(await store.read_root("task/1")) == [("s", -1), ("s", END_SEQ)]
    [delivery] = await store.deliveries("task/1")
    assert (delivery.deliveries, delivery.duplicates, delivery.results_repeated) == (115, 114, 114)


async def test_done_after_cancelled_in_the_end_slot_loses(store: Store) -> None:
    await push(store, "s", result("cancelled"), opening=opening())
    written = await push(store, "s", result("done"))
    assert (written.stored, written.conflicts) == (0, (END_SEQ,))
    [ended] = await store.read_stream("s", from_seq=0)
    assert b"cancelled" in ended.payload
    [delivery] = await store.deliveries("task/1")
    assert (delivery.conflicts, delivery.results_repeated) == (1, 1)


async def test_the_same_chunk_at_the_same_moment_is_stored_once_and_the_receipts_add_up(store: Store) -> None:
    await open_session(store)
    chunk = [event(seq) for seq in range(50)]
    one, other = await asyncio.gather(push(store, "s", *chunk), push(store, "s", *chunk))
    assert one.stored + other.stored == 50
    assert one.duplicates + other.duplicates == 50
    assert [read.seq for read in await store.read_stream("s", from_seq=0)] == list(range(50))
