"""When two events say the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.events.content import DIGEST_BYTES, content_digest, parse_payload, payload_object, same_payload

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def spelled(value: Any, **style: Any) -> bytes:
    return json.dumps(value, **style).encode("utf-8", "surrogatepass")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b'{"a":1,"b":2}', b' { "b" : 2 , "a" : 1 } '),
        (b'"\\u00e4\\/"', '"ä/"'.encode()),
        (b"1", b"1.0"),
        (b"100", b"1e2"),
        (b"1e999", b"10e998"),
        (b'{"a":1,"a":2}', b'{"a":2}'),
        (b"1e99999999999999999999", b"1e99999999999999999999"),
    ],
)
def test_spelling_does_not_count(one: bytes, other: bytes) -> None:
    assert same_payload(one, other)
    assert same_payload(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b"1", b"true"),
        (b"0", b"false"),
        (b"null", b"false"),
        (b"1", b'"1"'),
        (b"[1,2]", b"[2,1]"),
        (b"[]", b"{}"),
        (b'{"a":null}', b"{}"),
        (b"9007199254740993", b"9007199254740992"),
        (b"0.1", b"0.10000000000000000001"),
        (b"1e999", b"2e999"),
        (b'"a"', b'"A"'),
    ],
)
def test_another_value_is_not_the_same(one: bytes, other: bytes) -> None:
    assert not same_payload(one, other)
    assert not same_payload(other, one)


@given(VALUES)
def test_a_value_is_the_same_however_it_is_written(value: Any) -> None:
    plain = spelled(value)
    assert same_payload(plain, spelled(value, indent=2, sort_keys=True))
    assert same_payload(plain, spelled(value, ensure_ascii=False))


@given(VALUES, VALUES)
def test_sameness_goes_both_ways(one: Any, other: Any) -> None:
    assert same_payload(spelled(one), spelled(other)) == same_payload(spelled(other), spelled(one))


@given(st.tuples(st.text(), st.text(), st.binary()), st.tuples(st.text(), st.text(), st.binary()))
def test_a_digest_tells_kind_actor_and_payload_apart(
    one: tuple[str, str, bytes], other: tuple[str, str, bytes]
) -> None:
    assert len(content_digest(*one)) == DIGEST_BYTES
    assert (content_digest(*one) == content_digest(*other)) == (one == other)


def test_a_digest_knows_where_the_kind_ends() -> None:
    assert content_digest("a", "b c", b"1") != content_digest("a b", "c", b"1")
    assert content_digest("a", "b", b" 1") != content_digest("a", "b ", b"1")


@pytest.mark.parametrize(
    ("payload", "value"),
    [
        (b"18446744073709551617", 2**64 + 1),
        (b"9" * 5000, "9" * 5000),
        (b"-" + b"9" * 5000, "-" + "9" * 5000),
        (b'{"a":1,"a":2}', {"a": 2}),
        (b'"\\u0000"', "\x00"),
        (b"1e999", float("inf")),
    ],
)
def test_odd_payloads_are_read_for_folding(payload: bytes, value: object) -> None:
    assert parse_payload(payload) == value


def test_nesting_up_to_the_limit_is_read_for_folding() -> None:
    assert parse_payload(b"[" * 200 + b"]" * 200)


@pytest.mark.parametrize("payload", [b"null", b"[1]", b'"text"', b"7"])
def test_a_payload_that_is_no_object_folds_as_an_empty_one(payload: bytes) -> None:
    assert payload_object(payload) == {}
    assert payload_object(b'{"a":1}') == {"a": 1}
