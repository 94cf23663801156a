"""Strategies and measures that the tests of decoding share."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

TEXT = st.text('ab"\\[]{},: \n\x00ä\U0001f600', max_size=6)

# Values that strict JSON can say, full of what scanning could trip over
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=15,
)

# Values with lone surrogates, NaN and Infinity too
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters()), inner, max_size=3),
    max_leaves=8,
)

# Keyword arguments of json.dumps
STYLES = st.sampled_from([{}, {"indent": 1}, {"ensure_ascii": False}, {"separators": (",", ":")}])


def strict(text: bytes) -> Any:
    """The value of a text, read by a parser that refuses what strict JSON refuses."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return json.loads(text.decode(), parse_constant=refuse)


def assert_linear(action: Callable[[bytes], object], make_text: Callable[[int], bytes]) -> None:
    """Eight times the text takes about eight times as long; quadratic would be 64 times."""
    short, long = make_text(10_000), make_text(80_000)
    ratio = _fastest_s(action, long) / max(_fastest_s(action, short), 1e-4)
    assert ratio < 30, f"8 times the text took {ratio:.0f} times as long"


def _fastest_s(action: Callable[[bytes], object], text: bytes) -> float:
    def once_s() -> float:
        start = time.process_time()
        action(text)
        return time.process_time() - start

    return min(once_s() for _ in range(3))
