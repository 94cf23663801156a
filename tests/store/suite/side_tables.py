"""What a store keeps beside the log, and whom it tells of a commit."""

from __future__ import annotations

import re

from msgspec.structs import replace

from ledger.events.kinds import SESSION_OPENED
from ledger.store.base import Checkpoint, DeliveryTotals, Heads, Opening, Store, Token, Write
from tests.store.building import event, events, keys, open_session, opening, push, roots_of_one_bucket, whole_feed


async def test_a_ledger_has_a_name_of_sixteen_hex_digits(store: Store) -> None:
    assert re.fullmatch(r"[0-9a-f]{16}", store.ledger_id)


async def test_a_root_lies_in_one_of_the_buckets(store: Store) -> None:
    buckets = [store.bucket_of(f"task/{n}") for n in range(200)]
    assert buckets == [store.bucket_of(f"task/{n}") for n in range(200)]
    assert set(buckets) == set(range(store.buckets))


async def test_a_checkpoint_is_found_under_its_name_and_version(store: Store) -> None:
    first, later = Checkpoint("v1", 10, b"\x00state"), Checkpoint("v1", 20, b"more")
    await store.save_checkpoint("goal/1", first)
    await store.save_checkpoint("goal/2", Checkpoint("v1", 5, b"other"))
    assert await store.load_checkpoint("goal/1", "v1") == first
    await store.save_checkpoint("goal/1", later)
    assert await store.load_checkpoint("goal/1", "v1") == later
    assert await store.load_checkpoint("goal/1", "v2") is None
    assert await store.load_checkpoint("goal/3", "v1") is None


async def test_a_checkpoint_of_a_new_version_takes_the_place_of_the_old(store: Store) -> None:
    await store.save_checkpoint("goal/1", Checkpoint("v1", 10, b"old"))
    await store.save_checkpoint("goal/1", Checkpoint("v2", 3, b"new"))
    assert await store.load_checkpoint("goal/1", "v1") is None
    assert await store.load_checkpoint("goal/1", "v2") == Checkpoint("v2", 3, b"new")


async def test_tokens_come_as_they_were_put_oldest_first(store: Store) -> None:
    young = Token("a", "saddle", "alpha", b"\x02" * 32, created_at=9, expires_at=99)
    old = Token("b", "owner", "owner", b"\x01" * 32, created_at=1)
    await store.put_token(young)
    await store.put_token(old)
    assert await store.tokens() == [old, young]
    revoked = replace(young, revoked_at=50)
    await store.put_token(revoked)
    assert await store.tokens() == [old, revoked]


async def test_a_listener_is_told_which_roots_a_commit_moved(store: Store) -> None:
    one, other = roots_of_one_bucket(store, 2)
    await open_session(store, "s", "1", one)
    told: list[tuple[frozenset[str], Heads]] = []
    store.subscribe(lambda roots, heads: told.append((roots, heads)))
    appended = await store.append([Write("s", events(0)), Write("t", events(0), opening=opening("2", other))])
    assert told == [(frozenset({one, other}), appended.heads)]


async def test_a_listener_hears_nothing_of_a_commit_that_stored_no_event(store: Store) -> None:
    await push(store, "s", event(0), opening=opening())
    told: list[frozenset[str]] = []
    store.subscribe(lambda roots, heads: told.append(roots))
    await push(store, "s", event(0), event(0, '"x"'))
    await push(store, "@goal/2", opening=Opening("goal/2", None, "owner"))
    assert told == []


async def test_a_listener_hears_only_of_roots_with_new_events(store: Store) -> None:
    one, other = roots_of_one_bucket(store, 2)
    await push(store, "s", event(0), opening=opening("1", one))
    told: list[frozenset[str]] = []
    store.subscribe(lambda roots, heads: told.append(roots))
    await store.append([Write("s", events(0)), Write("t", events(0), opening=opening("2", other))])
    assert told == [frozenset({other})]


async def test_a_listener_that_has_ended_hears_nothing_and_the_others_do(store: Store) -> None:
    told: list[str] = []
    end = store.subscribe(lambda roots, heads: told.append("first"))
    store.subscribe(lambda roots, heads: told.append("second"))
    await open_session(store)
    end()
    await push(store, "s", event(0))
    assert told == ["first", "second", "second"]


async def test_what_a_listener_is_told_of_can_be_read(store: Store) -> None:
    heard: list[Heads] = []
    store.subscribe(lambda roots, heads: heard.append(heads))
    await open_session(store)
    assert heard == [await store.heads()]
    [opened] = await whole_feed(store)
    assert (opened.kind, keys([opened])) == (SESSION_OPENED, [("s", -1)])


async def test_delivery_totals_count_what_each_saddle_delivered_over_all_roots(store: Store) -> None:
    assert await store.delivery_totals() == []
    await push(store, "@task/1", event(0), opening=Opening("task/1", "1", "owner"))
    await push(store, "s", *events(1, 2), opening=opening("1"))
    await push(store, "s", event(0), event(1), event(2, '"other"'))
    await push(store, "t", event(0), opening=opening("2"))
    await open_session(store, "u", "3")
    await push(store, "v", *events(0, 1), opening=opening("4", saddle="beta"))
    assert await store.delivery_totals() == [
        DeliveryTotals("alpha", 3, 7, deliveries=3, duplicates=1, conflicts=1, late=1, results_repeated=0),
        DeliveryTotals("beta", 1, 3, deliveries=1, duplicates=0, conflicts=0, late=0, results_repeated=0),
    ]
