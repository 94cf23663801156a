"""All other bodies, and events made from Python values."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import InvalidField, MalformedBody
from ledger.events.content import content_digest
from ledger.events.decode import decode_body, decode_chunk, new_event
from ledger.events.model import Limits
from ledger.events.wire import AskIn, ChunkIn, DecisionIn, GoalIn, OpenIn, ResultIn, TaskIn
from tests.unit.events.json_texts import ANYTHING, strict


def test_a_body_is_decoded_into_its_type() -> None:
    assert decode_body(b'\xef\xbb\xbf{"session_id":7,"state":"done","more":1}', ResultIn) == ResultIn(7, "done")
    assert decode_body(b'{"task":{"title":"T"}}', OpenIn) == OpenIn(task=TaskIn(title="T"))


@pytest.mark.parametrize("body", [b"", b" \n", b"{}", b"\xef\xbb\xbf"])
def test_no_body_is_an_empty_object_where_that_is_allowed(body: bytes) -> None:
    assert decode_body(body, DecisionIn, empty_ok=True) == DecisionIn()
    assert decode_body(body, AskIn, empty_ok=True) == AskIn()


def test_no_body_is_refused_elsewhere() -> None:
    with pytest.raises(MalformedBody):
        decode_body(b"", DecisionIn)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (rb'"\ud83d"', "\ufffd"),
        (b'"\xff"', "\ufffd"),
        (b'"a\nb"', "a\nb"),
        (rb'"\\ud83d"', r"\ud83d"),
    ],
)
def test_a_text_that_strict_json_refuses_is_mended(text: bytes, kept: str) -> None:
    assert decode_body(b'{"session_id":"s","state":"failed","summary":%s}' % text, ResultIn).summary == kept


def test_not_a_number_is_null_and_so_may_be_no_value() -> None:
    assert decode_body(b'{"session_id":"s","state":"done","seq":NaN}', ResultIn).seq is None
    with pytest.raises(InvalidField) as caught:
        decode_body(b'{"wait_s":NaN}', AskIn)
    assert caught.value.field == "wait_s"


@pytest.mark.parametrize(
    ("body", "type", "field"),
    [
        (b"[]", GoalIn, "body"),
        (b"{}", GoalIn, "title"),
        (b'{"title":7}', GoalIn, "title"),
        (b'{"task":{"title":7}}', OpenIn, "task.title"),
        (b'{"task":{"id":true}}', OpenIn, "task.id"),
        (b'{"session_id":"s","events":[{"seq":1,"kind":"k"},7]}', ChunkIn, "events[1]"),
        (b'{"session_id":"s"}', ResultIn, "state"),
    ],
)
def test_a_wrong_field_is_named_by_its_path(body: bytes, type: type, field: str) -> None:
    with pytest.raises(InvalidField) as caught:
        decode_body(body, type)
    assert caught.value.field == field
    assert caught.value.detail.startswith(f"{field}: ")
    assert caught.value.hint


@pytest.mark.parametrize("body", [b"x", b'{"title":"a"', b'{"title":"a"} x', b'{"title":"a', rb'{"title":"\x"}'])
def test_what_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(MalformedBody):
        decode_body(body, GoalIn)


def test_a_body_nested_out_of_reach_is_refused() -> None:
    with pytest.raises(InvalidField, match="too deep"):
        decode_body(b'{"title":"a","more":' + b"[" * 20_000 + b"]" * 20_000 + b"}", GoalIn)


# Events made from Python values


def test_an_event_is_made_from_python_values() -> None:
    event = new_event(3, "tool_call", "model", {"tool": "bash", "args": ["ä", 1.5, None]}, at=9)
    assert (event.seq, event.kind, event.actor, event.at) == (3, "tool_call", "model", 9)
    assert event.payload == '{"tool":"bash","args":["ä",1.5,null]}'.encode()
    assert event.digest == content_digest("tool_call", "model", event.payload)


@pytest.mark.parametrize(
    ("value", "payload"),
    [
        (float("nan"), b"null"),
        ([float("inf"), -float("inf")], b"[null,null]"),
        ("\ud83d", rb'"\ufffd"'),
        ([2**64, -(10**40)], b"[18446744073709551616,-1%s]" % (b"0" * 40)),
        ({1: "a"}, b'{"1":"a"}'),
        (["\ud83d", float("nan"), 2**70], rb'["\ufffd",null,1180591620717411303424]'),
    ],
)
def test_what_strict_json_has_no_form_for_is_mended(value: object, payload: bytes) -> None:
    assert new_event(0, "k", "a", value).payload == payload


def test_a_value_that_is_no_json_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        new_event(0, "k", "a", {1, 2})


@given(ANYTHING, st.text(st.characters(), min_size=1, max_size=200))
def test_a_made_event_is_strict_json_and_goes_through_the_wire_unchanged(value: object, name: str) -> None:
    made = new_event(0, name, name, value)
    strict(made.payload)
    kind = json.dumps(made.kind).encode()
    body = b'{"session_id":"s","events":[{"seq":0,"kind":%s,"actor":%s,"payload":%s}]}' % (kind, kind, made.payload)
    chunk = decode_chunk(body, Limits())
    assert (chunk.events, chunk.repaired) == ([made], [])
