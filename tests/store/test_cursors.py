from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.errors import ForeignCursor
from ledger.store import cursors

LEDGER, ANOTHER = "0123456789abcdef", "fedcba9876543210"
positions = st.integers(0, 2**63 - 1)


@settings(print_blob=True)
@given(st.binary(min_size=8, max_size=8), st.lists(positions, min_size=1, max_size=64))
def test_a_cursor_comes_back_as_the_heads_it_was_made_from(ledger: bytes, heads: list[int]) -> None:
    text = cursors.encode(ledger.hex(), tuple(heads))
    assert re.fullmatch(r"[A-Za-z0-9_-]+", text)
    assert cursors.decode(text, ledger.hex(), len(heads)) == tuple(heads)


@settings(print_blob=True)
@given(st.lists(positions, min_size=1, max_size=4), st.data())
def test_a_cursor_that_was_cut_or_mistyped_is_refused(heads: list[int], data: st.DataObject) -> None:
    text = cursors.encode(LEDGER, tuple(heads))
    at = data.draw(st.integers(0, len(text) - 1))
    mistyped = (
        text[:at] + data.draw(st.sampled_from("Aa0_-+/=é ").filter(lambda one: one != text[at])) + text[at + 1 :]
    )
    for wrong in (text[:at], text + text[at:], mistyped):
        with pytest.raises(ForeignCursor):
            cursors.decode(wrong, LEDGER, len(heads))


@settings(print_blob=True)
@given(st.text(max_size=60))
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(ForeignCursor):
        cursors.decode(text, LEDGER, 1)


def test_a_cursor_of_another_ledger_is_refused_by_name() -> None:
    with pytest.raises(ForeignCursor) as refused:
        cursors.decode(cursors.encode(ANOTHER, (7,)), LEDGER, 1)
    assert ANOTHER in refused.value.detail
    assert LEDGER in refused.value.detail
    assert refused.value.hint


@pytest.mark.parametrize("buckets", [1, 2, 4, 64])
def test_a_cursor_over_another_number_of_buckets_is_refused(buckets: int) -> None:
    text = cursors.encode(LEDGER, (5, 6, 7))
    with pytest.raises(ForeignCursor, match="3 buckets"):
        cursors.decode(text, LEDGER, buckets)


def test_the_start_lies_before_every_bucket() -> None:
    assert cursors.start(1) == (0,)
    assert cursors.start(3) == (0, 0, 0)


def test_a_cursor_is_short() -> None:
    assert len(cursors.encode(LEDGER, (1_000_000,))) <= 20


@pytest.mark.parametrize("position", [-1, 2**63])
def test_what_is_no_position_has_no_cursor(position: int) -> None:
    with pytest.raises(ValueError, match="no position"):
        cursors.encode(LEDGER, (position,))
