"""What holds for whatever is pushed."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import InvalidField, MalformedBody
from ledger.events import decode
from ledger.events.content import content_digest, parse_payload
from ledger.events.decode import decode_chunk
from ledger.events.model import Limits
from tests.unit.events.json_texts import ANYTHING, strict

LIMITS = Limits(payload_bytes=1000)
GOOD = b'{"session_id":"s1","events":[{"seq":1,"kind":"message","payload":{"text":"good"}},{"seq":2,"kind":"k"}]}'

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=200)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
EVENTS = st.fixed_dictionaries(
    {"seq": st.integers(0, 2**63 - 2), "kind": NAMES},
    optional={
        "actor": NAMES,
        "payload": VALUES,
        "at": st.none() | st.integers() | st.floats(allow_nan=False) | st.text() | st.just("2025-03-04T12:00:00Z"),
    },
)
ODD_EVENTS = ANYTHING | st.dictionaries(
    st.sampled_from(["seq", "kind", "actor", "payload", "at", "trace"]), ANYTHING
).map(lambda odd: {"seq": 1, "kind": "k"} | odd)


@given(st.lists(EVENTS, max_size=5), st.sampled_from([None, 1]), st.booleans())
def test_events_taken_apart_are_the_same_as_events_taken_in_one_go(
    events: list[Any], indent: int | None, ensure_ascii: bool
) -> None:
    def text(more: list[Any]) -> bytes:
        whole = {"session_id": "s1", "events": events + more}
        return json.dumps(whole, indent=indent, ensure_ascii=ensure_ascii).encode("utf-8", "replace")

    swift, careful = decode_chunk(text([]), LIMITS), decode_chunk(text([None]), LIMITS)
    assert careful.rejected.pop().code == decode.INVALID_EVENT
    assert careful == swift


@given(st.lists(ODD_EVENTS, max_size=5), st.booleans())
def test_each_event_is_stored_as_strict_json_or_rejected(events: list[Any], ensure_ascii: bool) -> None:
    text = json.dumps({"session_id": "s1", "events": events}, ensure_ascii=ensure_ascii)
    chunk = decode_chunk(text.encode("utf-8", "surrogatepass"), LIMITS)
    assert len(chunk.events) + len(chunk.rejected) == len(events)
    for taken in chunk.events:
        strict(taken.payload)
        strict(taken.extra or b"{}")
        parse_payload(taken.payload)
        assert taken.digest == content_digest(taken.kind, taken.actor, taken.payload)
    msgspec.json.encode((chunk.rejected, chunk.repaired))


@given(
    st.binary()
    | st.text('{}[]",:\\ud8NaI 1').map(str.encode)
    | st.binary().map(lambda event: b'{"session_id":"s1","events":[%s]}' % event)
    | st.tuples(st.integers(0, 200), st.binary(max_size=3)).map(lambda cut: GOOD[: cut[0]] + cut[1] + GOOD[cut[0] :])
)
def test_no_bytes_raise_anything_but_a_refusal(text: bytes) -> None:
    try:
        chunk = decode_chunk(text, LIMITS)
    except (MalformedBody, InvalidField):
        return
    for taken in chunk.events:
        strict(taken.payload)
