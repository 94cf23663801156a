"""Chunks: what is stored of them, what is mended, what is rejected, and when the whole is refused."""

from __future__ import annotations

import msgspec
import pytest

from ledger.errors import InvalidField, MalformedBody
from ledger.events import decode
from ledger.events.content import content_digest, parse_payload
from ledger.events.decode import Chunk, decode_chunk
from ledger.events.model import Limits
from ledger.events.wire import OpenIn, Rejected, Repaired, TaskIn

LIMITS = Limits(payload_bytes=1000, chunk_events=2000)
GOOD = b'{"seq":1,"kind":"message","actor":"model","payload":{"text":"good"}}'


def body(*events: bytes, session_id: bytes = b'"s1"', rest: bytes = b"") -> bytes:
    return b'{"session_id":%s,"events":[%s]%s}' % (session_id, b",".join(events), rest)


def event(payload: bytes = b"{}", *, seq: bytes = b"7", kind: bytes = b'"message"', rest: bytes = b"") -> bytes:
    return b'{"seq":%s,"kind":%s,"payload":%s%s}' % (seq, kind, payload, rest)


def take(*events: bytes, limits: Limits = LIMITS) -> Chunk:
    return decode_chunk(body(*events), limits)


def payloads(chunk: Chunk) -> list[bytes]:
    return [taken.payload for taken in chunk.events]


def codes(chunk: Chunk) -> list[tuple[int, object, str]]:
    return [(rejected.index, rejected.seq, rejected.code) for rejected in chunk.rejected]


def test_a_chunk_becomes_events_ready_to_be_stored() -> None:
    chunk = decode_chunk(
        b'{"session_id": 12, "events": [{"seq": 0, "kind": "tool_call", "actor": "model",'
        b' "payload": { "tool" : "bash" }, "at": "2025-03-04T12:00:00.5Z"}, {"seq": 5, "kind": "x"}],'
        b' "open": {"task": {"id": 3, "title": "T"}}}',
        LIMITS,
    )
    assert (chunk.session_id, chunk.rejected, chunk.repaired) == ("12", [], [])
    assert chunk.open == OpenIn(task=TaskIn(id=3, title="T"))
    first, second = chunk.events
    assert (first.seq, first.kind, first.actor, first.at) == (0, "tool_call", "model", 1_741_089_600_500_000_000)
    assert first.payload == b'{ "tool" : "bash" }'
    assert first.digest == content_digest("tool_call", "model", first.payload)
    assert (second.actor, second.payload, second.at, second.extra) == ("", b"{}", None, None)


def test_no_events_are_a_chunk() -> None:
    assert take() == Chunk("s1", [], [], [], None)


@pytest.mark.parametrize("seen", [-1, 0, 6, 2**63 - 2])
def test_a_chunk_may_say_what_its_sender_has_seen(seen: int) -> None:
    rest = b',"expected_seq":%d' % seen
    assert decode_chunk(body(rest=rest), LIMITS).expected_seq == seen
    apart = decode_chunk(body(rest=rest + b',"other":NaN'), LIMITS)  # what strict JSON refuses is taken apart
    assert apart.expected_seq == seen


@pytest.mark.parametrize("seen", [b"-2", b"1.5", b'"5"', b"true", b"9223372036854775807", b"[]"])
def test_what_was_seen_is_a_seq_or_minus_one(seen: bytes) -> None:
    with pytest.raises(InvalidField, match="expected_seq"):
        decode_chunk(body(rest=b',"expected_seq":%s' % seen), LIMITS)


def test_a_chunk_that_says_what_was_seen_is_taken_whole_or_not_at_all() -> None:
    for bad, code in ((event(b'"' + b"x" * 1000 + b'"', seq=b"8"), "payload_too_large"), (b"[]", "invalid_event")):
        with pytest.raises(InvalidField, match=r"events\[1\]") as caught:
            decode_chunk(body(event(), bad, rest=b',"expected_seq":6'), LIMITS)
        assert caught.value.code == code


@pytest.mark.parametrize(("seqs", "at"), [((b"6",), 0), ((b"7", b"7"), 1), ((b"8", b"7"), 1)])
def test_what_follows_what_was_seen_rises(seqs: tuple[bytes, ...], at: int) -> None:
    chunk = body(*[event(seq=seq) for seq in seqs], rest=b',"expected_seq":6')
    with pytest.raises(InvalidField) as caught:
        decode_chunk(chunk, LIMITS)
    assert (caught.value.field, caught.value.code) == (f"events[{at}].seq", "invalid_seq")


def test_a_byte_order_mark_is_skipped() -> None:
    assert decode_chunk(b"\xef\xbb\xbf" + body(GOOD), LIMITS) == take(GOOD)


# What strict JSON refuses but agents produce


@pytest.mark.parametrize(
    ("payload", "kept", "what"),
    [
        (rb'{"text":"\ud83d"}', rb'{"text":"\ufffd"}', "lone_surrogate"),
        (b'{"n":NaN,"t":"NaN"}', b'{"n":null,"t":"NaN"}', "non_finite_number"),
        (b"[Infinity,-Infinity]", b"[null,null]", "non_finite_number"),
        (b'{"text":"\xff"}', '{"text":"\ufffd"}'.encode(), "invalid_utf8"),
        (b'"line\nline"', rb'"line\u000aline"', "control_character"),
    ],
)
def test_a_poisoned_payload_is_mended_and_its_neighbours_stay_byte_for_byte(
    payload: bytes, kept: bytes, what: str
) -> None:
    odd = b'{ "b":1, "b" : 1.0, "t":"\\\\ud83d \\u00e4 \\ud83d\\ude00" }'
    chunk = take(event(odd, seq=b"6"), event(payload), event(odd, seq=b"8"))
    assert payloads(chunk) == [odd, kept, odd]
    assert chunk.repaired == [Repaired(7, what)]
    assert chunk.events[1].digest == content_digest("message", "", kept)


def test_one_event_may_need_several_repairs() -> None:
    chunk = take(event(b'["\xff","\\ud83d",NaN]', rest=b',"at":"noon"'))
    assert [repaired.what for repaired in chunk.repaired] == [
        "invalid_utf8",
        "lone_surrogate",
        "non_finite_number",
        "bad_time",
    ]
    assert {repaired.seq for repaired in chunk.repaired} == {7}


def test_kind_and_actor_are_mended_like_payloads() -> None:
    chunk = take(event(kind=rb'"a\ud83d"', rest=b',"actor":"b\xff"'))
    assert (chunk.events[0].kind, chunk.events[0].actor) == ("a\ufffd", "b\ufffd")
    assert chunk.repaired == [Repaired(7, "invalid_utf8"), Repaired(7, "lone_surrogate")]


def test_a_control_character_in_a_kind_is_replaced_for_no_store_need_hold_it() -> None:
    chunk = take(event(kind=rb'"a\u0000b"'))
    assert chunk.events[0].kind == "a\ufffdb"
    assert chunk.repaired == [Repaired(7, "control_character")]


@pytest.mark.parametrize(
    "at", [b'"2025-03-04T12:00:00"', b'"noon"', b'""', b"true", b"[1]", b"1e999", b"9" * 5000, b"NaN"]
)
def test_a_time_that_is_no_instant_is_left_out_with_a_note(at: bytes) -> None:
    chunk = take(event(rest=b',"at":' + at))
    assert chunk.events[0].at is None
    if at != b"NaN":  # which says no time at all, once it is mended
        assert chunk.repaired == [Repaired(7, "bad_time")]


def test_no_time_needs_no_note() -> None:
    chunk = take(event(rest=b',"at":null'))
    assert (chunk.events[0].at, chunk.repaired) == (None, [])


# What is kept as it is


@pytest.mark.parametrize(
    "payload",
    [
        rb'"\u0000"',
        b"[9007199254740993,9223372036854775808,18446744073709551616,1" + b"0" * 40 + b",1e999]",
        b'{"a":1,"a":2,"a":[ ]}',
        b"9" * 900,
        b"null",
        b"-0",
        b'"text"',
    ],
)
def test_a_payload_is_kept_byte_for_byte(payload: bytes) -> None:
    assert payloads(take(event(payload))) == [payload]
    assert payloads(take(event(payload), b"7")) == [payload]  # and so beside one that is rejected


def test_unknown_fields_of_an_event_are_kept_with_it() -> None:
    chunk = take(GOOD, event(rest=b',"trace" : { "id":1.0 },"\\u00e4":NaN,"trace":[ 1 ]'))
    assert chunk.events[0].extra is None
    assert chunk.events[1].extra == '{"trace":[ 1 ],"ä":null}'.encode()
    assert chunk.repaired == [Repaired(7, "non_finite_number")]


def test_an_unknown_field_nested_up_to_the_limit_is_kept() -> None:
    nested = b"[" * 200 + b"]" * 200
    assert take(event(rest=b',"more":' + nested)).events[0].extra == b'{"more":%s}' % nested


def test_of_a_field_given_twice_the_last_counts() -> None:
    for spoiled in (b"", b',"trace":1'):
        chunk = take(event(rest=b',"seq":8,"payload":[2]' + spoiled))
        assert (chunk.events[0].seq, chunk.events[0].payload) == (8, b"[2]")


def test_unknown_fields_of_a_chunk_are_skipped() -> None:
    assert decode_chunk(body(GOOD, rest=b',"later":{"a":[1]}'), LIMITS).events == take(GOOD).events
    assert decode_chunk(body(GOOD, b"7", rest=b',"later":{"a":[NaN]}'), LIMITS).events == take(GOOD).events


# What is rejected, each alone


@pytest.mark.parametrize(
    ("seq", "said"),
    [
        (b"5.0", 5.0),
        (b'"5"', "5"),
        (b"true", True),
        (b"null", None),
        (b"-1", -1),
        (b"-2", -2),
        (b"1e3", 1000.0),
        (b"9223372036854775807", 2**63 - 1),
        (b"9223372036854775808", 2**63),
        (b"18446744073709551616", 2**64),
        (b"1" + b"0" * 40, 10**40),
        (b"9" * 5000, None),
        (b'"' + b"x" * 300 + b'"', None),
        (b"[1]", None),
        (b"NaN", None),
    ],
)
def test_a_seq_that_is_no_integer_in_bounds_is_rejected(seq: bytes, said: object) -> None:
    chunk = take(GOOD, event(seq=seq), GOOD)
    assert codes(chunk) == [(1, said, "invalid_seq")]
    assert len(chunk.events) == 2
    msgspec.json.encode(chunk.rejected)


@pytest.mark.parametrize("seq", [0, 2**53 + 1, 2**63 - 2])
def test_a_seq_in_bounds_is_exact(seq: int) -> None:
    assert take(event(seq=b"%d" % seq)).events[0].seq == seq


@pytest.mark.parametrize(
    ("raw", "seq", "code"),
    [
        (b"7", None, "invalid_event"),
        (b"null", None, "invalid_event"),
        (b'"text"', None, "invalid_event"),
        (b'["seq",7]', None, "invalid_event"),
        (b'{"kind":"message"}', None, "invalid_seq"),
        (b'{"seq":7}', 7, "invalid_kind"),
        (b'{"seq":7,"kind":null}', 7, "invalid_kind"),
        (b'{"seq":7,"kind":5}', 7, "invalid_kind"),
        (b'{"seq":7,"kind":""}', 7, "invalid_kind"),
        (event(kind=b'"' + b"k" * 201 + b'"'), 7, "invalid_kind"),
        (event(rest=b',"actor":5'), 7, "invalid_actor"),
        (event(rest=b',"actor":"' + b"a" * 201 + b'"'), 7, "invalid_actor"),
        (event(b'"' + b"x" * 999 + b'"'), 7, "payload_too_large"),
        (event(b'"' + b"x" * 500 + b'"', rest=b',"more":"' + b"x" * 500 + b'"'), 7, "payload_too_large"),
        (event(rest=b',"more":"' + b"x" * 1000 + b'"'), 7, "payload_too_large"),
        (event(b"[" * 201 + b"]" * 201), 7, "nested_too_deep"),
        (event(rest=b',"more":' + b"[" * 201 + b"]" * 201), 7, "nested_too_deep"),
    ],
)
def test_an_unusable_event_costs_only_itself(raw: bytes, seq: int | None, code: str) -> None:
    chunk = take(GOOD, raw, GOOD)
    assert codes(chunk) == [(1, seq, code)]
    assert payloads(chunk) == [b'{"text":"good"}'] * 2
    assert chunk.rejected[0].detail
    assert chunk.repaired == []


def test_a_kind_and_an_actor_of_200_characters_are_stored() -> None:
    name = ("ä" * 200).encode()
    chunk = take(event(kind=b'"%s"' % name, rest=b',"actor":"%s"' % name))
    assert (chunk.events[0].kind, chunk.events[0].actor) == ("ä" * 200, "ä" * 200)


def test_no_actor_is_an_empty_one() -> None:
    assert take(event(rest=b',"actor":null')).events[0].actor == ""


def test_a_payload_of_exactly_the_limit_is_stored() -> None:
    assert codes(take(event(b'"' + b"x" * 998 + b'"'))) == []


def test_the_limit_is_on_the_payload_as_it_is_kept() -> None:
    grows = b'"' + b"\xff" * 400 + b'"'
    assert codes(take(event(grows))) == [(0, 7, "payload_too_large")]


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
@pytest.mark.parametrize("levels", [200, 201, 900, 1_024, 20_000])
def test_nesting_up_to_the_limit_is_stored_and_beyond_it_rejected(opening: bytes, levels: int) -> None:
    nested = opening * levels + b"0" + (b"]" if opening == b"[" else b"}") * levels
    chunk = take(GOOD, event(nested), GOOD, limits=Limits())
    if levels == 200:
        assert payloads(chunk)[1] == nested
        parse_payload(nested)
    else:
        assert codes(chunk) == [(1, 7, "nested_too_deep")]
        assert len(chunk.events) == 2


@pytest.mark.parametrize("levels", [200, 201])
def test_the_nesting_of_a_mended_payload_counts_the_same(levels: int) -> None:
    chunk = take(event(b"[" * levels + b"NaN" + b"]" * levels))
    assert [code for _, _, code in codes(chunk)] == ([] if levels == 200 else ["nested_too_deep"])


def test_brackets_in_strings_are_no_nesting() -> None:
    assert codes(take(event(b'"' + b"[" * 500 + b'"'))) == []


def test_of_1446_events_the_one_that_is_poison_is_the_only_loss() -> None:
    events = [event(seq=b"%d" % seq) for seq in range(1446)]
    events[700] = event(seq=b"true")
    chunk = take(*events)
    assert [taken.seq for taken in chunk.events] == [*range(700), *range(701, 1446)]
    assert codes(chunk) == [(700, True, "invalid_seq")]


def test_an_output_of_1200000_bytes_is_stored_and_one_of_5000000_rejected() -> None:
    for size, stored in ((1_200_000, 1), (5_000_000, 0)):
        chunk = take(event(b'"' + b"x" * size + b'"'), GOOD, limits=Limits())
        assert len(chunk.events) == stored + 1
        assert [code for _, _, code in codes(chunk)] == ["payload_too_large"] * (1 - stored)


# When the whole is refused


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"events",
        b"{",
        body(GOOD)[:-1],
        body(GOOD)[:-20],
        body(GOOD, event(b'"\\ud83d"'))[:-5],
        body(GOOD) + b"x",
        body(GOOD) + body(GOOD),
        body(b"[1}"),
        body(event(b"[1,]")),
        body(event(b"tru")),
        body(event(b"01")),
        body(event(rb'"\x"')),
        body(event(b"{a:1}")),
        body(GOOD + GOOD),
        body(event(b"[" * 300 + b"]" * 299)),
        body(GOOD, rest=b',"later":tru'),
        body(GOOD, b"7", rest=b',"later":tru'),
        "{}".encode("utf-16"),
    ],
)
def test_what_is_no_json_is_refused_whole(text: bytes) -> None:
    with pytest.raises(MalformedBody):
        decode_chunk(text, LIMITS)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (b"[]", "body"),
        (b"7", "body"),
        (b"{}", "session_id"),
        (b'{"events":[]}', "session_id"),
        (body(session_id=b"null"), "session_id"),
        (body(session_id=b"1.5"), "session_id"),
        (body(session_id=b'""'), "session_id"),
        (body(session_id=b'"@goal/7"'), "session_id"),
        (body(session_id=rb'"\ud83d"'), "session_id"),
        (body(session_id=b'"\xff"'), "session_id"),
        (body(session_id=b"[" * 5000 + b"]" * 5000), "session_id"),
        (b'{"session_id":"s1"}', "events"),
        (b'{"session_id":"s1","events":null}', "events"),
        (b'{"session_id":"s1","events":{"0":1}}', "events"),
        (body(GOOD, rest=b',"open":7'), "open"),
        (body(GOOD, rest=b',"open":{"task":{"title":7}}'), "open.task.title"),
        (body(*[GOOD] * 2001), "events"),
        (body(*[b"7"] * 2001), "events"),
    ],
)
def test_an_unusable_request_names_its_field(text: bytes, field: str) -> None:
    with pytest.raises(InvalidField) as caught:
        decode_chunk(text, LIMITS)
    assert caught.value.field == field
    assert caught.value.hint


def test_as_many_events_as_the_limit_are_taken() -> None:
    assert len(take(*[GOOD] * 2000).events) == 2000


def test_a_rejection_says_what_the_receipt_needs() -> None:
    assert take(event(seq=b"5.0")).rejected == [
        Rejected(0, 5.0, decode.INVALID_SEQ, "seq: Expected `int`, got `float`")
    ]
