from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections import ordered as ordered_module
from projections.ordered import CHUNK_MAX, Ordered

KEYS = st.lists(st.integers(0, 40))


@pytest.fixture(autouse=True, params=[2, 3, CHUNK_MAX], scope="module")
def _chunks_of_any_size(request: pytest.FixtureRequest) -> Iterator[None]:
    with patch.object(ordered_module, "CHUNK_MAX", request.param):
        yield


def made(keys: list[int]) -> Ordered[int]:
    ordered: Ordered[int] = Ordered()
    for key in keys:
        ordered = ordered.add(key)
    return ordered


@given(KEYS, KEYS)
def test_it_holds_what_a_sorted_set_would(added: list[int], removed: list[int]) -> None:
    ordered = made(added)
    for key in removed:
        ordered = ordered.remove(key)
    wanted = sorted(set(added) - set(removed))
    assert list(ordered) == wanted
    assert len(ordered) == len(wanted)
    assert list(ordered.falling()) == wanted[::-1]
    assert all(ordered.chunks)


@given(KEYS, st.integers(-1, 41))
def test_neighbours_of_any_key_are_found(keys: list[int], key: int) -> None:
    ordered, held = made(keys), sorted(set(keys))
    assert ordered.after(key) == min((one for one in held if one > key), default=None)
    assert ordered.before(key) == max((one for one in held if one < key), default=None)
    assert list(ordered.falling(below=key)) == [one for one in held[::-1] if one < key]


def test_more_keys_than_a_chunk_stay_in_order_from_either_end() -> None:
    count = 5 * CHUNK_MAX
    rising, falling = made(list(range(count))), made(list(range(count, 0, -1)))
    assert list(rising) == list(range(count))
    assert list(falling) == list(range(1, count + 1))
    assert max(len(chunk) for chunk in (*rising.chunks, *falling.chunks)) <= CHUNK_MAX
    assert all(one[-1] < other[0] for one, other in pairwise(falling.chunks))
    assert next(rising.falling(below=CHUNK_MAX + 1)) == CHUNK_MAX
    assert rising.after(CHUNK_MAX - 1) == CHUNK_MAX


def test_an_older_value_stays_as_it_was() -> None:
    before = made([1, 2, 3])
    after = before.add(4).remove(1)
    assert (list(before), list(after)) == ([1, 2, 3], [2, 3, 4])


def test_adding_what_is_there_or_removing_what_is_not_gives_the_same_value() -> None:
    ordered = made([1, 2])
    assert ordered.add(2) is ordered
    assert ordered.remove(3) is ordered
    assert Ordered[int]().remove(3) == Ordered()


def test_keys_are_spread_evenly_and_the_greatest_is_among_them() -> None:
    order: Ordered[int] = Ordered()
    for key in range(1000):
        order = order.add(key)
    assert order.spread(4) == [249, 499, 749, 999]
    assert order.spread(5000) == list(range(1000))
    assert Ordered[int]().spread(3) == []
