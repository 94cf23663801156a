"""Inputs that agents do produce and that broke others: each is stored, mended or rejected alone."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import httpx
import msgspec
import pytest

from tests.live.serving import (
    assert_problem,
    chunk_text,
    event,
    events_of,
    opened,
    push,
    push_raw,
    running,
    seen,
)


def one_event(payload: bytes, seq: bytes = b"1", more: bytes = b"") -> bytes:
    return b'[{"seq": %s, "kind": "tool_result", "actor": "harness", "payload": %s%s}]' % (seq, payload, more)


def payload_text(reader: httpx.Client, session_id: str) -> bytes:
    """The payload of the session's first pushed event as the log holds it, byte for byte."""
    answer = reader.get(f"/api/sessions/{session_id}/events", params={"from": 0, "limit": 1})
    page = msgspec.json.decode(answer.content, type=dict[str, msgspec.Raw])
    [first] = msgspec.json.decode(page["events"], type=list[dict[str, msgspec.Raw]])
    return bytes(first["payload"])


@pytest.mark.parametrize(
    ("payload", "what", "kept"),
    [
        (rb'{"out": "\ud83d"}', "lone_surrogate", rb'{"out": "\ufffd"}'),
        (rb'{"out": "\udc4d and \ud83d\ude00"}', "lone_surrogate", rb'{"out": "\ufffd and \ud83d\ude00"}'),
        (b'{"a": NaN, "b": [Infinity, -Infinity]}', "non_finite_number", b'{"a": null, "b": [null, null]}'),
        (b'{"out": "\xff\xfe"}', "invalid_utf8", '{"out": "��"}'.encode()),
        (b'{"out": "a\x1b[0m"}', "control_character", rb'{"out": "a\u001b[0m"}'),
    ],
)
def test_what_strict_json_refuses_is_mended_and_named(
    saddle: httpx.Client, reader: httpx.Client, payload: bytes, what: str, kept: bytes
) -> None:
    session_id, task_id = opened(saddle)
    good = b'{"seq": 2, "kind": "message", "actor": "model", "payload": {"text": "NaN is a word"}}'
    receipt = push_raw(saddle, session_id, one_event(payload)[:-1] + b"," + good + b"]")
    assert (receipt["stored"], receipt["rejected"]) == (2, [])
    assert receipt["repaired"] == [{"seq": 1, "what": what}]
    assert payload_text(reader, session_id) == kept
    assert events_of(reader, session_id)[1]["payload"] == {"text": "NaN is a word"}
    assert reader.get(f"/api/tasks/{task_id}").status_code == 200
    assert push_raw(saddle, session_id, one_event(payload))["duplicates"] == 1


@pytest.mark.parametrize(
    "payload",
    [
        rb'{"out": "\u0000"}',
        b'{ "twice": 1,\n\t"twice": 2 }',
        b'{"n": [9007199254740993, 9223372036854775808, 18446744073709551616, 1e999, -0, 0.10]}',
        b'{"n": 1' + b"0" * 40 + b"}",
        '{"out": "é \\u00e9 😀 \u2028"}'.encode(),
        b"null",
        b'"just a text"',
        b"[]",
    ],
)
def test_a_payload_is_kept_byte_for_byte(saddle: httpx.Client, reader: httpx.Client, payload: bytes) -> None:
    session_id, task_id = opened(saddle)
    receipt = push_raw(saddle, session_id, one_event(payload))
    assert (receipt["stored"], receipt["repaired"]) == (1, [])
    assert payload_text(reader, session_id) == payload
    feed = reader.get("/api/events", params={"limit": 5000}).content
    assert payload in feed
    assert reader.get(f"/api/tasks/{task_id}").status_code == 200
    for page in (f"/sessions/{session_id}", f"/tasks/{task_id}"):
        assert reader.get(page).status_code == 200


@pytest.mark.parametrize(
    "seq", [b"5.0", b'"5"', b"true", b"-1", b"9223372036854775807", b"1e3", b"1" + b"0" * 40, b"null", b"[1]", b"{}"]
)
def test_a_seq_that_is_no_such_integer_is_rejected(saddle: httpx.Client, reader: httpx.Client, seq: bytes) -> None:
    session_id, _ = opened(saddle)
    receipt = push_raw(saddle, session_id, one_event(b"{}", seq)[:-1] + b"," + one_event(b"{}", b"6")[1:])
    [rejected] = receipt["rejected"]
    assert set(rejected) == {"index", "seq", "code", "detail"}
    assert (rejected["index"], rejected["code"], receipt["stored"]) == (0, "invalid_seq", 1)
    assert [one["seq"] for one in events_of(reader, session_id)] == [6]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b'{"kind": "message"}', "invalid_seq"),
        (b'{"seq": 1}', "invalid_kind"),
        (b'{"seq": 1, "kind": ""}', "invalid_kind"),
        (b'{"seq": 1, "kind": "%s"}' % (b"k" * 201), "invalid_kind"),
        (b'{"seq": 1, "kind": "message", "actor": 7}', "invalid_actor"),
        (b"7", "invalid_event"),
        (b"null", "invalid_event"),
        (b"[]", "invalid_event"),
    ],
)
def test_an_event_without_what_it_needs_is_rejected_alone(saddle: httpx.Client, text: bytes, code: str) -> None:
    session_id, _ = opened(saddle)
    receipt = push_raw(saddle, session_id, one_event(b"{}")[:-1] + b"," + text + b"]")
    assert receipt["stored"] == 1
    assert [(one["index"], one["code"]) for one in receipt["rejected"]] == [(1, code)]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "malformed_body"),
        (b"not JSON", 400, "malformed_body"),
        (b'{"session_id": "x", "events": [', 400, "malformed_body"),
        (b'{"session_id": "x", "events": [{"seq": 1}', 400, "malformed_body"),
        (b"[]", 422, "invalid_field"),
        (b'{"events": []}', 422, "invalid_field"),
        (b'{"session_id": "x"}', 422, "invalid_field"),
        (b'{"session_id": "x", "events": {}}', 422, "invalid_field"),
        (b'{"session_id": null, "events": []}', 422, "invalid_field"),
        (b'{"session_id": "x", "events": [], "open": 7}', 422, "invalid_field"),
    ],
)
def test_a_request_that_is_unusable_is_refused(saddle: httpx.Client, body: bytes, status: int, code: str) -> None:
    assert_problem(saddle.post("/api/saddle/chunks", content=body), status, code)


def test_a_body_cut_in_the_middle_stores_nothing(saddle: httpx.Client, reader: httpx.Client) -> None:
    session_id, _ = opened(saddle)
    body = json.dumps({"session_id": session_id, "events": [event(seq) for seq in range(50)]}).encode()
    for share in (0.2, 0.5, 0.9, 0.999):
        cut = body[: int(len(body) * share)]
        assert_problem(saddle.post("/api/saddle/chunks", content=cut), 400, "malformed_body")
    assert events_of(reader, session_id) == []


def test_a_byte_order_mark_before_the_body_is_skipped(saddle: httpx.Client) -> None:
    session_id, _ = opened(saddle)
    body = b"\xef\xbb\xbf" + chunk_text(session_id, one_event(b"{}"))
    assert saddle.post("/api/saddle/chunks", content=body).json()["stored"] == 1


def test_one_poison_event_costs_its_1445_neighbours_nothing(saddle: httpx.Client, reader: httpx.Client) -> None:
    session_id, _ = opened(saddle)
    events = [event(seq) for seq in range(1446)]
    events[700] = {"seq": 700, "kind": ["not a kind"]}
    receipt = push(saddle, session_id, events)
    assert receipt["stored"] == 1445
    assert [(one["index"], one["seq"]) for one in receipt["rejected"]] == [(700, 700)]
    assert len(events_of(reader, session_id)) == 1445


def test_unknown_kinds_and_fields_are_kept(saddle: httpx.Client, reader: httpx.Client) -> None:
    session_id, task_id = opened(saddle)
    text = one_event(b"{}", more=b', "trace": {"span": [1, 2.50]}, "\\u0061lias": "x"')
    assert push_raw(saddle, session_id, text.replace(b"tool_result", "крик".encode()))["stored"] == 1
    [kept] = events_of(reader, session_id)
    assert (kept["kind"], kept["extra"]) == ("крик", {"trace": {"span": [1, 2.5]}, "alias": "x"})
    assert reader.get(f"/sessions/{session_id}").status_code == 200
    assert seen(reader, f"/api/tasks/{task_id}")["status"] == "working"


def test_unknown_fields_of_a_request_are_overlooked(saddle: httpx.Client) -> None:
    session_id, _ = opened(saddle, colour="blue")
    assert push(saddle, session_id, [event(0)], colour="blue")["stored"] == 1


def test_hostile_words_in_other_requests_are_mended_too(saddle: httpx.Client, reader: httpx.Client) -> None:
    session_id, task_id = opened(saddle)
    body = b'{"session_id": "%s", "state": "failed", "summary": "half a \\ud83d"}' % session_id.encode()
    assert saddle.post("/api/saddle/results", content=body).json()["stored"] == 1
    assert seen(reader, f"/api/tasks/{task_id}")["summary"] == "half a \ufffd"


# Instants

AS_SENT = {
    "2024-03-01T12:00:00+05:30": "2024-03-01T06:30:00Z",
    "2024-03-01T12:00:00Z": "2024-03-01T12:00:00Z",
    "2024-03-01T12:00:00.123456789Z": "2024-03-01T12:00:00.123456789Z",
    "2016-12-31T23:59:60Z": "2017-01-01T00:00:00Z",
    "2024-03-01T24:00:00Z": "2024-03-02T00:00:00Z",
    1709294400: "2024-03-01T12:00:00Z",
    1709294400123: "2024-03-01T12:00:00.123Z",
}
UNSURE = ["2024-03-01T12:00:00", "yesterday", "2024-13-01T00:00:00Z", True, [], {}]


def test_instants_are_right_or_left_out_whatever_the_zone_of_the_host(tmp_path: Path) -> None:
    with running(tmp_path, environment={"TZ": "America/Los_Angeles"}) as server:
        saddle, reader = server.saddle("anvil"), server.client()
        session_id, _ = opened(saddle)
        sent = [*AS_SENT, *UNSURE]
        receipt = push(saddle, session_id, [event(seq, at=at) for seq, at in enumerate(sent)])
        assert receipt["stored"] == len(sent)
        unsure = [{"seq": seq, "what": "bad_time"} for seq in range(len(AS_SENT), len(sent))]
        assert receipt["repaired"] == unsure
        events = events_of(reader, session_id)
        assert [one["at"] for one in events] == [*AS_SENT.values(), *[None] * len(UNSURE)]
        recorded = datetime.fromisoformat(events[0]["recorded_at"])
        stated = datetime.fromisoformat(seen(reader, "/api/fleet")["at"])
        assert abs((stated - recorded).total_seconds()) < 60
        assert abs(datetime.now(recorded.tzinfo) - recorded).total_seconds() < 60


def test_order_is_by_seq_and_not_by_the_clocks_of_senders(saddle: httpx.Client, reader: httpx.Client) -> None:
    session_id, task_id = opened(saddle)
    push(saddle, session_id, [event(0, "comment", {"body": "first"}, at="2024-03-01T12:00:05Z")])
    push(saddle, session_id, [event(1, "comment", {"body": "second"}, at="2024-03-01T12:00:01Z")])
    rows = seen(reader, f"/api/tasks/{task_id}")["events"]
    assert [row["text"] for row in rows if row["kind"] == "comment"] == ["first", "second"]
