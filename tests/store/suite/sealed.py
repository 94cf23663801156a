"""Each transaction that stored events has its link in the chain."""

from __future__ import annotations

from ledger.store import sealing
from ledger.store.base import Opening, Store, Write
from ledger.store.verifying import verify
from tests.store.building import event, events, open_session, opening, push, roots_of_one_bucket, whole_feed


async def test_a_seal_chains_the_rows_of_one_append_to_the_seal_before(store: Store) -> None:
    one, other = roots_of_one_bucket(store, 2)
    bucket = store.bucket_of(one)
    await open_session(store, "s", "1", one)
    await store.append(
        [Write("s", [event(0, at=5, extra=b"{}")]), Write("t", events(0), opening=opening("2", other))]
    )
    rows = [sealing.row_of(read) for read in await whole_feed(store)]
    first, second = await store.seals(bucket)
    assert (first.bucket, first.number, first.first, first.last) == (bucket, 1, 1, 1)
    assert (second.bucket, second.number, second.first, second.last) == (bucket, 2, 2, 4)
    assert first.digest == sealing.link(sealing.first_link(store.ledger_id, bucket), rows[:1])
    assert second.digest == sealing.link(first.digest, rows[1:])


async def test_only_an_append_that_stored_an_event_is_sealed(store: Store) -> None:
    await push(store, "s", event(0), opening=opening())
    await push(store, "s", event(0), event(0, '"x"'))
    await push(store, "@task/1", opening=Opening("task/1", "1", "owner"))
    bucket = store.bucket_of("task/1")
    assert [seal.number for seal in await store.seals(bucket)] == [1]


async def test_seals_are_read_in_pages(store: Store) -> None:
    await open_session(store)
    for seq in range(4):
        await push(store, "s", event(seq))
    bucket = store.bucket_of("task/1")
    assert [seal.number for seal in await store.seals(bucket, after=1, limit=3)] == [2, 3, 4]
    assert await store.seals(bucket, after=5) == []


async def test_an_untouched_ledger_verifies(store: Store) -> None:
    empty = await verify(store)
    assert (empty.ok, empty.events, empty.seals) == (True, 0, 0)
    for task in "123":
        await push(store, f"s{task}", *events(0, 1), opening=opening(task))
    await push(store, "s1", event(0, '"x"'), event(5, at=3, extra=b"{}", recorded_at=9))
    verdict = await verify(store)
    assert (verdict.ok, verdict.events, verdict.seals, verdict.what) == (True, 10, 4, "")
    last = [await store.seals(bucket, after=0) for bucket in range(store.buckets)]
    assert [head for head, seals in zip(verdict.head, last, strict=True) if seals] == [
        seals[-1].digest.hex() for seals in last if seals
    ]


async def test_a_seal_printed_earlier_is_found_in_the_longer_chain(store: Store) -> None:
    await open_session(store)
    bucket = store.bucket_of("task/1")
    printed = (await verify(store)).head[bucket]
    await push(store, "s", event(0))
    assert (await verify(store, expect=printed.upper())).ok
    assert (await verify(store, expect=(await verify(store)).head[bucket])).ok


async def test_a_seal_that_is_not_in_the_chain_shows_that_something_was_cut_off(store: Store) -> None:
    await open_session(store)
    verdict = await verify(store, expect="ab" * 32)
    assert not verdict.ok
    assert "ab" * 32 in verdict.what
    assert (verdict.events, verdict.seal) == (1, None)
