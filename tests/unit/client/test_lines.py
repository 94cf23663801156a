from __future__ import annotations

import pytest

from ledger.client.lines import BadLine, read_line
from ledger.client.outbox import NEXT_SEQ
from ledger.events.times import parse_instant


def test_a_line_gives_the_event_that_a_server_would_read() -> None:
    event = read_line(
        b' {"kind": "note", "payload": {"a": 1.50}, "actor": "me", "at": "2026-02-03T04:05:06Z", "x": 1} \r'
    )
    assert (event.seq, event.kind, event.actor, event.payload) == (NEXT_SEQ, "note", "me", b'{"a": 1.50}')
    assert event.at == parse_instant("2026-02-03T04:05:06Z")
    assert event.extra == b'{"x":1}'


def test_a_seq_is_kept_and_a_time_is_now_where_none_is_given() -> None:
    event = read_line(b'{"kind": "note", "seq": 7}')
    assert event.seq == 7
    assert event.at is not None


def test_what_agents_write_is_mended() -> None:
    assert (
        read_line(b'{"kind": "note", "payload": {"a": NaN, "b": "\xff"}}').payload
        == '{"a": null, "b": "\ufffd"}'.encode()
    )


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"not json", "malformed"),
        (b'{"kind": "note"', "cut short"),
        (b'{"kind": "a"} {"kind": "b"}', "malformed"),
        (b'["note"]', "malformed"),
        (b"{}", "kind"),
        (b'{"kind": ""}', "kind"),
        (b'{"kind": "note", "seq": -1}', "seq"),
        (b'{"kind": "note", "seq": "1"}', "seq"),
        (b'{"kind": "note", "payload": ' + b"[" * 300 + b"]" * 300 + b"}", "nested"),
    ],
)
def test_a_line_that_holds_no_event_says_why(line: bytes, why: str) -> None:
    with pytest.raises(BadLine, match=why):
        read_line(line)
