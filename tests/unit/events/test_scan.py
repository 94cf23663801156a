"""JSON text taken apart, compared with what a JSON parser makes of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import MalformedBody
from ledger.events.scan import elements, members, nested_deeper
from tests.unit.events.json_texts import STYLES, TEXT, VALUES, assert_linear


def levels(value: Any) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(levels, value), default=0) if isinstance(value, list) else 0


@given(st.lists(VALUES, max_size=5), STYLES)
def test_an_array_is_split_where_a_parser_splits_it(values: list[Any], style: dict[str, Any]) -> None:
    text = json.dumps(values, **style).encode()
    assert [json.loads(raw) for raw in elements(b" " + text + b"\n")] == values


@given(st.dictionaries(TEXT, VALUES, max_size=5), STYLES)
def test_an_object_is_split_where_a_parser_splits_it(value: dict[str, Any], style: dict[str, Any]) -> None:
    text = json.dumps(value, **style).encode()
    assert {key: json.loads(raw) for key, raw in members(b"\t" + text + b" ").items()} == value


@given(VALUES, STYLES)
def test_depth_counts_brackets_outside_strings(value: Any, style: dict[str, Any]) -> None:
    text = json.dumps(value, **style).encode()
    assert not nested_deeper(text, levels(value))
    assert nested_deeper(text, levels(value) - 1)


def test_values_come_out_byte_for_byte() -> None:
    assert list(elements(b'[ {"a" : 1}, NaN ,"\xff", -1e5 ]')) == [b'{"a" : 1}', b"NaN", b'"\xff"', b"-1e5"]
    assert members(b'{"a":[ 1 ],"\\u0062": {},"a":2}') == {"a": b"2", "b": b"{}"}


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"1",
        b"{",
        b"[1,2",
        b"[1,]",
        b"[,]",
        b"[1 2]",
        b"[1]]",
        b"[1] x",
        b'["a',
        b'["a\\"]',
        b"[[1]",
        b"[1}",
        b"[:]",
    ],
)
def test_what_is_no_array_is_malformed(text: bytes) -> None:
    with pytest.raises(MalformedBody):
        list(elements(text))


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"{", b'{"a"}', b'{"a":}', b'{"a":1,}', b"{a:1}", b'{"a":1]', b'{"\\x":1}', b'{"a":1}{}', b'{"a'],
)
def test_what_is_no_object_is_malformed(text: bytes) -> None:
    with pytest.raises(MalformedBody):
        members(text)


def test_a_million_brackets_are_no_recursion() -> None:
    deep = b"[" * 500_000 + b"]" * 500_000
    assert [len(raw) for raw in elements(b"[" + deep + b",1]")] == [1_000_000, 1]
    assert nested_deeper(deep, 499_999)
    assert not nested_deeper(deep, 500_000)


HOSTILE: dict[str, Callable[[int], bytes]] = {
    "brackets that never close": lambda n: b"[" * n,
    "an unclosed string of escaped quotes": lambda n: b'["' + b'\\"' * n,
    "an unclosed string in a list": lambda n: b'[["' + b'\\"' * n,
    "a string of backslashes": lambda n: b'["' + b"\\" * n,
    "many strings": lambda n: b"[1" + b',"a"' * n,
    "many numbers": lambda n: b"[1" + b",1" * n,
    "white space": lambda n: b"[1" + b" " * n,
    "many small containers": lambda n: b"[[" + b"[],{}," * n,
    "numbers between brackets": lambda n: b"[[" + b"1,1,1,1,[" * n,
    "a quote after each bracket": lambda n: b"[[" + b'["' * n,
}


def take_apart(text: bytes) -> None:
    with pytest.raises(MalformedBody):
        list(elements(text))


@pytest.mark.parametrize("shape", HOSTILE)
def test_time_is_linear_in_the_length_of_a_hostile_text(shape: str) -> None:
    assert_linear(take_apart, HOSTILE[shape])
