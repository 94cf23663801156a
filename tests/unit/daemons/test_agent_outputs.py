"""Lines, as they are cut from what comes in pieces of any size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.daemons.agent.outputs import Lines

TEXTS = st.lists(st.sampled_from([b"\n", b"a", b"bc", b"x" * 7, b"\r", b"y" * 40]), max_size=60).map(b"".join)
SIZES = st.lists(st.integers(1, 30), min_size=1, max_size=20)


def cut_in_pieces(lines: Lines, text: bytes, sizes: list[int]) -> list[bytes]:
    found: list[bytes] = []
    while text:
        for size in sizes:
            found += lines.cut(text[:size])
            text = text[size:]
    return found + lines.rest()


def lines_of(text: bytes) -> list[bytes]:
    lines = text.split(b"\n")
    return lines if lines[-1] else lines[:-1]


@given(TEXTS, SIZES)
def test_however_it_comes_the_lines_are_the_same(text: bytes, sizes: list[int]) -> None:
    assert cut_in_pieces(Lines(1000), text, sizes) == lines_of(text)


@given(TEXTS, SIZES, st.integers(1, 20))
def test_a_long_line_is_parted_and_nothing_of_it_is_lost(text: bytes, sizes: list[int], most: int) -> None:
    found = cut_in_pieces(Lines(most), text, sizes)
    assert all(len(line) <= most for line in found)
    assert b"".join(found) == text.replace(b"\n", b"")
    assert found == [
        line[start : start + most] for line in lines_of(text) for start in range(0, max(len(line), 1), most)
    ]


@given(TEXTS, SIZES, st.integers(1, 20))
def test_where_long_lines_are_left_out_the_others_stay(text: bytes, sizes: list[int], most: int) -> None:
    lines = Lines(most, parts=False)
    assert cut_in_pieces(lines, text, sizes) == [line for line in lines_of(text) if len(line) <= most]
    assert lines.left_out == sum(len(line) > most for line in lines_of(text))


@pytest.mark.parametrize("parts", [True, False])
def test_no_more_than_one_line_is_held(parts: bool) -> None:
    lines = Lines(1000, parts=parts)
    for _ in range(100):
        lines.cut(b"x" * 900)
        assert len(lines._rest) <= 1000
