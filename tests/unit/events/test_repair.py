"""What is mended, and that nothing else is touched."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import MalformedBody
from ledger.events import repair
from ledger.events.repair import mend, mend_name
from tests.unit.events.json_texts import STYLES, VALUES, assert_linear

PIECES = ["\\\\", "\\ud83d", "\\ude00", "\\uD83D\\uDE00", "\\n", '\\"', "ud83d", "a", "\\u0041", "ä"]


@pytest.mark.parametrize(
    ("text", "mended", "what"),
    [
        (rb'"\ud83d"', rb'"\ufffd"', repair.LONE_SURROGATE),
        (rb'"\ude00\ud83d"', rb'"\ufffd\ufffd"', repair.LONE_SURROGATE),
        (rb'"\ud83d\ud83d\ude00"', rb'"\ufffd\ud83d\ude00"', repair.LONE_SURROGATE),
        (rb'"\ud83d \ude00"', rb'"\ufffd \ufffd"', repair.LONE_SURROGATE),
        (rb'"\\\ud83d"', rb'"\\\ufffd"', repair.LONE_SURROGATE),
        (rb'{"\uDFFF":1}', rb'{"\ufffd":1}', repair.LONE_SURROGATE),
        (b"NaN", b"null", repair.NON_FINITE_NUMBER),
        (b'[Infinity,-Infinity , "NaN"]', b'[null,null , "NaN"]', repair.NON_FINITE_NUMBER),
        (b'{"NaN":"-Infinity","a":NaN}', b'{"NaN":"-Infinity","a":null}', repair.NON_FINITE_NUMBER),
        (b'"\xff\xc3"', '"\ufffd\ufffd"'.encode(), repair.INVALID_UTF8),
        (b'"\xed\xa0\xbd"', '"\ufffd\ufffd\ufffd"'.encode(), repair.INVALID_UTF8),
        (b'"a\nb\x00"', rb'"a\u000ab\u0000"', repair.CONTROL_CHARACTER),
        (b'[\n"\\\\\t"\n]', b'[\n"\\\\\\u0009"\n]', repair.CONTROL_CHARACTER),
    ],
)
def test_what_strict_json_refuses_is_mended_and_named(text: bytes, mended: bytes, what: str) -> None:
    assert mend(text) == (mended, (what,))


def test_several_repairs_are_each_named_once() -> None:
    text, what = mend(b'["\xff\xff","\\ud83d\\ud83d","\n\n",NaN,NaN]')
    assert text == '["\ufffd\ufffd","\\ufffd\\ufffd","\\u000a\\u000a",null,null]'.encode()
    assert what == ("invalid_utf8", "lone_surrogate", "control_character", "non_finite_number")


@pytest.mark.parametrize(
    "text",
    [
        rb'"\\ud83d"',
        rb'"\\\\ud83d\\"',
        rb'"\ud83d\ude00"',
        rb'"\u0000"',
        b'"NaN"',
        b'\n[\r\n"-Infinity"\t]',
        b"1e999",
        b'"\x7f"',
    ],
)
def test_what_strict_json_takes_is_not_touched(text: bytes) -> None:
    assert mend(text) == (text, ())


@given(VALUES, STYLES)
def test_no_value_in_strict_json_is_touched(value: Any, style: dict[str, Any]) -> None:
    text = json.dumps(value, **style).encode()
    assert mend(text) == (text, ())


@given(st.lists(st.sampled_from(PIECES)))
def test_exactly_the_halves_without_their_other_half_are_replaced(pieces: list[str]) -> None:
    text = f'"{"".join(pieces)}"'
    want = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in json.loads(text))
    mended, what = mend(text.encode())
    assert json.loads(mended) == want
    assert (repair.LONE_SURROGATE in what) == (mended != text.encode())


@given(st.binary() | st.text('["\\NaInfity-,\n]').map(str.encode))
def test_any_bytes_come_out_as_utf8_or_are_refused(text: bytes) -> None:
    try:
        mended, _ = mend(text)
    except MalformedBody:
        return
    mended.decode()


def test_a_broken_escape_stays_broken() -> None:
    assert mend(b'"a\\\nb"') == (b'"a\\\nb"', ())
    assert mend(rb'"\x41"') == (rb'"\x41"', ())


@pytest.mark.parametrize("name", ["tool_call", "käyttäjä", "a b", "\U0001f600", "zero\u200bwidth"])
def test_a_name_that_can_be_stored_is_not_touched(name: str) -> None:
    assert mend_name(name) == name


def test_a_name_loses_its_control_characters_and_half_characters() -> None:
    assert mend_name("a\x00b\x1bc\x7fd\ud83d") == "a\ufffdb\ufffdc\ufffdd\ufffd"


HOSTILE: dict[str, Callable[[int], bytes]] = {
    "half characters": lambda n: b'"' + b"\\ud83d" * n + b'"',
    "backslashes": lambda n: b'"\\ud83d' + b"\\\\" * n + b'"',
    "not numbers": lambda n: b"[0" + b",NaN" * n + b"]",
    "control characters": lambda n: b'"' + b"a\n" * n + b'"',
    "invalid bytes": lambda n: b'"' + b"\xff" * n + b'"',
    "quotes, the last unclosed": lambda n: b'NaN\n"' + b'\\"' * n,
}


def mend_or_refuse(text: bytes) -> None:
    with contextlib.suppress(MalformedBody):
        mend(text)


@pytest.mark.parametrize("shape", HOSTILE)
def test_time_is_linear_in_the_length_of_a_hostile_text(shape: str) -> None:
    assert_linear(mend_or_refuse, HOSTILE[shape])
