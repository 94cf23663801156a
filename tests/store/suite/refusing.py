"""When an append is refused, and that it then leaves nothing."""

from __future__ import annotations

import pytest

from ledger.errors import LedgerError, NotFound, SessionElsewhere, StreamMoved
from ledger.events.model import NO_EVENTS, OPENING_SEQ
from ledger.store.base import Opening, Store, Write
from tests.store.building import event, events, open_session, opening, push, result, roots_of_one_bucket, whole_feed


async def test_a_stream_that_was_never_opened_is_unknown(store: Store) -> None:
    with pytest.raises(NotFound) as refused:
        await push(store, "s", event(0))
    assert refused.value.code == "unknown_session"
    assert "'s'" in refused.value.detail
    assert "/api/saddle/sessions" in refused.value.hint
    assert await store.stream("s") is None


async def test_another_saddles_session_looks_unknown(store: Store) -> None:
    with pytest.raises(NotFound) as never_opened:
        await store.append([Write("s", events(0), saddle="beta")])
    await open_session(store)
    with pytest.raises(NotFound) as of_another:
        await store.append([Write("s", events(0), saddle="beta")])
    with pytest.raises(NotFound) as opened_anew:
        await store.append([Write("s", events(0), saddle="beta", opening=opening("9", saddle="beta"))])
    told = [(error.value.code, error.value.detail, error.value.hint) for error in (of_another, opened_anew)]
    assert told == [(never_opened.value.code, never_opened.value.detail, never_opened.value.hint)] * 2
    assert (await store.append([Write("s", events(0), saddle="alpha")])).writes[0].stored == 1


async def test_a_session_stays_with_its_task_for_ever(store: Store) -> None:
    await open_session(store, "s", "71")
    with pytest.raises(SessionElsewhere) as refused:
        await push(store, "s", event(0), opening=opening("82"))
    assert "'s'" in refused.value.detail
    assert "'71'" in refused.value.detail
    assert "'82'" in refused.value.detail
    assert await store.streams_of("task/82") == []
    assert await store.losers("s") == []


@pytest.mark.parametrize("expected", [NO_EVENTS, OPENING_SEQ, 0, 2, 3, 5])
async def test_a_conditional_append_fails_where_the_stream_has_moved(store: Store, expected: int) -> None:
    await push(store, "s", *events(0, 2, 4), result("done"), opening=opening())
    with pytest.raises(StreamMoved) as refused:
        await store.append([Write("s", events(5), opening=opening(), expected_seq=expected)])
    assert (refused.value.stream, refused.value.last_seq) == ("s", 4)
    assert "'s'" in refused.value.detail


async def test_a_stream_that_is_not_there_has_not_reached_any_seq(store: Store) -> None:
    with pytest.raises(StreamMoved) as refused:
        await store.append([Write("s", events(1), opening=opening(), expected_seq=0)])
    assert refused.value.last_seq == NO_EVENTS
    assert await store.stream("s") is None


async def test_a_condition_holds_for_a_write_without_events(store: Store) -> None:
    await push(store, "s", event(0), opening=opening())
    with pytest.raises(StreamMoved):
        await store.append([Write("s", expected_seq=OPENING_SEQ)])
    await store.append([Write("s", expected_seq=0)])


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (Write("nowhere", events(0)), NotFound),
        (Write("held", events(1), saddle="beta"), NotFound),
        (Write("held", events(1), opening=Opening("task/1", "elsewhere", "alpha")), SessionElsewhere),
        (Write("held", events(1), expected_seq=9), StreamMoved),
    ],
)
async def test_one_write_that_is_refused_fails_the_whole_append_and_leaves_nothing(
    store: Store, bad: Write, error: type[LedgerError], place: int
) -> None:
    one, other = roots_of_one_bucket(store, 2)
    await push(store, "held", event(0), opening=opening("1", one))
    await push(store, "too", event(0), opening=opening("1", one))
    bucket, feed = store.bucket_of(one), await whole_feed(store)
    before = await store.stream("held"), await store.deliveries(one), await store.seals(bucket)
    told: list[object] = []
    store.subscribe(lambda roots, heads: told.append(roots))
    writes = [
        Write("too", [event(0, '"x"'), event(0), event(1)]),
        Write("new", events(0), opening=opening("2", other)),
    ]
    writes.insert(place, bad)
    with pytest.raises(error):
        await store.append(writes)
    assert await whole_feed(store) == feed
    assert (await store.stream("held"), await store.deliveries(one), await store.seals(bucket)) == before
    assert await store.losers("too") == []
    assert await store.stream("new") is None
    assert await store.streams_of(other) == []
    assert told == []
    assert (await push(store, "held", event(1))).stored == 1


async def test_an_append_that_names_a_stream_twice_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="once"):
        await store.append([Write("s", events(0), opening=opening()), Write("s", events(1))])
    assert await store.stream("s") is None
