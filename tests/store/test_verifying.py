"""A ledger that lies: each test changes what the store gives, as damage on its disk would."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from ledger.events.content import content_digest
from ledger.events.model import Recorded
from ledger.store import sealing
from ledger.store.base import Heads, Seal, Write
from ledger.store.memory import MemoryStore
from ledger.store.verifying import verify
from tests.store.building import Clock, event, events, opening, push

Feed = Callable[[list[Recorded]], list[Recorded]]
Seals = Callable[[list[Seal]], list[Seal]]


class Damaged(MemoryStore):
    """Gives its events, seals and heads as the three functions leave them."""

    def __init__(self, clock: Clock, buckets: int = 1) -> None:
        super().__init__(clock, buckets)
        self.on_events: Feed = list
        self.on_seals: Seals = list
        self.on_heads: Callable[[Heads], Heads] = tuple
        self.largest_page = 0

    async def heads(self) -> Heads:
        return self.on_heads(await super().heads())

    async def read_feed(self, after: Heads, *, limit: int = 1000, decisive: bool = False) -> list[Recorded]:
        every = self.on_events(await super().read_feed((0,) * self.buckets, limit=10**9))
        page = [one for one in every if one.position > after[one.bucket]][:limit]
        self.largest_page = max(self.largest_page, len(page))
        return page

    async def seals(self, bucket: int, *, after: int = 0, limit: int = 1000) -> list[Seal]:
        every = self.on_seals(await super().seals(bucket, after=0, limit=10**9))
        return [seal for seal in every if seal.number > after][:limit]


@pytest.fixture
async def store(clock: Clock) -> Damaged:
    """Seal 1 covers the positions 1 and 2, seal 2 the positions 3 to 5, seal 3 position 6."""
    store = Damaged(clock)
    await push(store, "s", event(0), opening=opening())
    await push(store, "s", *events(1, 2, 3))
    await push(store, "s", event(4))
    return store


def without(position: int) -> Feed:
    return lambda every: [one for one in every if one.position != position]


def changed(position: int, change: Callable[[Recorded], Recorded]) -> Feed:
    return lambda every: [change(one) if one.position == position else one for one in every]


def with_payload_and_digest(one: Recorded) -> Recorded:
    return replace(one, payload=b"9", digest=content_digest(one.kind, one.actor, b"9"))


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (changed(4, lambda one: replace(one, payload=b"9")), "content of position 4"),
        (changed(4, lambda one: replace(one, digest=b"9" * 16)), "content of position 4"),
        (changed(4, with_payload_and_digest), "were changed"),
        (changed(4, lambda one: replace(one, task_id="9")), "were changed"),
        (changed(4, lambda one: replace(one, at=9)), "were changed"),
        (without(4), "position 4"),
        (without(3), "position 3"),
        (without(5), "position 5"),
        (lambda every: every[:4], "position 5"),
    ],
)
async def test_damage_to_an_event_names_the_seal_over_it(store: Damaged, damage: Feed, what: str) -> None:
    store.on_events = damage
    verdict = await verify(store)
    assert (verdict.ok, verdict.bucket, verdict.seal, verdict.first, verdict.last) == (False, 0, 2, 3, 5)
    assert what in verdict.what
    assert (verdict.events, verdict.seals) == (2, 1)
    assert verdict.head == ((await MemoryStore.seals(store, 0))[0].digest.hex(),)


@pytest.mark.parametrize(
    ("damage", "seal", "first", "last", "what"),
    [
        (lambda seals: [seals[0], seals[2]], 2, 3, 5, "seal 2 is missing"),
        (lambda seals: seals[1:], 1, 1, 2, "seal 1 is missing"),
        (lambda seals: seals[:2], 3, 6, 6, "the positions 6 to 6 lie under no seal"),
        (lambda seals: [], 1, 1, 6, "the positions 1 to 6 lie under no seal"),
        (lambda seals: [seals[0], replace(seals[1], digest=b"9" * 32), seals[2]], 2, 3, 5, "seal 2"),
        (lambda seals: [seals[0], replace(seals[1], first=4), seals[2]], 2, 4, 5, "where 3 comes next"),
        (lambda seals: [seals[0], replace(seals[1], last=4), seals[2]], 2, 3, 4, "seal 2"),
        (lambda seals: [*seals[:2], replace(seals[2], last=2**62)], 3, 6, 2**62, "position 7"),
        (lambda seals: [*seals, Seal(0, 4, 7, 8, b"9" * 32)], 4, 7, 8, "rows that it covers are missing"),
    ],
)
async def test_damage_to_a_seal_is_named(
    store: Damaged, damage: Seals, seal: int, first: int, last: int, what: str
) -> None:
    store.on_seals = damage
    verdict = await verify(store)
    assert (verdict.ok, verdict.seal, verdict.first, verdict.last) == (False, seal, first, last)
    assert what in verdict.what


async def test_a_chain_made_anew_over_changed_events_is_found_by_a_seal_kept_elsewhere(store: Damaged) -> None:
    [printed] = (await verify(store)).head
    store.on_events = changed(4, with_payload_and_digest)
    every = await store.read_feed((0,))

    def forge(seals: list[Seal]) -> list[Seal]:
        link, forged = sealing.first_link(store.ledger_id, 0), []
        for seal in seals:
            link = sealing.link(link, map(sealing.row_of, every[seal.first - 1 : seal.last]))
            forged.append(replace(seal, digest=link))
        return forged

    store.on_seals = forge
    assert (await verify(store)).ok
    verdict = await verify(store, expect=printed)
    assert (verdict.ok, verdict.seal, verdict.bucket) == (False, None, None)
    assert printed in verdict.what


async def test_an_end_cut_off_everywhere_is_found_by_a_seal_kept_elsewhere(store: Damaged) -> None:
    [printed] = (await verify(store)).head
    store.on_events, store.on_seals, store.on_heads = (
        (lambda every: every[:5]),
        (lambda seals: seals[:2]),
        lambda heads: (5,),
    )
    assert (await verify(store)).ok
    assert not (await verify(store, expect=printed)).ok


async def test_an_event_behind_the_last_seal_is_found_where_the_heads_do_not_know_it(store: Damaged) -> None:
    store.on_events = lambda every: [*every, replace(every[-1], position=7, seq=5)]
    verdict = await verify(store)
    assert (verdict.ok, verdict.seal, verdict.first, verdict.last) == (False, 4, 7, 7)


async def test_what_is_written_while_the_walk_goes_on_is_no_damage(store: Damaged) -> None:
    async def heads_then_a_write() -> Heads:
        heads = await MemoryStore.heads(store)
        await push(store, "s", event(9))
        return heads

    store.heads = heads_then_a_write  # type: ignore[method-assign]
    verdict = await verify(store)
    assert (verdict.ok, verdict.events) == (True, 6)


async def test_damage_in_one_bucket_of_several_names_the_bucket(clock: Clock) -> None:
    store = Damaged(clock, buckets=4)
    for task in map(str, range(12)):
        await push(store, f"s{task}", event(0), opening=opening(task))
    assert (await verify(store)).ok
    assert (await verify(store)).events == 24
    store.on_events = lambda every: [replace(one, actor="nobody") if one.session_id == "s3" else one for one in every]
    verdict = await verify(store)
    assert (verdict.ok, verdict.bucket) == (False, store.bucket_of("task/3"))


async def test_a_large_ledger_is_read_in_small_pages(clock: Clock) -> None:
    store = Damaged(clock)
    await store.append([Write("s", [event(seq) for seq in range(1500)], opening("1"))])
    for seq in range(1500, 1510):
        await push(store, "s", event(seq))
    verdict = await verify(store)
    assert (verdict.ok, verdict.events, verdict.seals) == (True, 1511, 11)
    assert store.largest_page <= 200
