from __future__ import annotations

import json
from collections.abc import Callable
from itertools import islice
from typing import Any

import click
import httpx
import pytest
from click.testing import Result

from ledger.cli import tail
from ledger.client.api import Api, ApiError

Run = Callable[..., Result]


def event(position: int, kind: str = "comment", payload: Any = None) -> dict[str, Any]:
    return {
        "position": position,
        "session_id": "s1",
        "seq": position,
        "kind": kind,
        "actor": "model",
        "at": None,
        "recorded_at": "2026-02-03T04:05:06Z",
        "task_id": "1",
        "payload": {"body": f"remark {position}"} if payload is None else payload,
    }


class Server:
    """A log that grows by one event each time that a live reader has heard so; a cursor is a position."""

    def __init__(self, events: int) -> None:
        self.log = [event(number) for number in range(1, events + 1)]
        self.live_readers = 0
        self.down = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/api/live":
            if self.down:
                self.down -= 1
                raise httpx.ConnectError("refused")
            self.live_readers += 1
            return httpx.Response(200, stream=self._messages())
        after = int(request.url.params.get("after") or 0)
        events = self.log[after : after + int(request.url.params["limit"])]
        return httpx.Response(200, json={"events": events, "cursor": str(after + len(events))})

    def _messages(self) -> httpx.SyncByteStream:
        server = self

        class Messages(httpx.SyncByteStream):
            def __iter__(self):  # type: ignore[no-untyped-def]
                yield b"event: hello\nid: %d\ndata: {}\n\n: still here\n\n" % len(server.log)
                for _ in range(2):
                    server.log.append(event(len(server.log) + 1))
                    yield b"event: moved\nid: %d\ndata: {}\n\n" % len(server.log)
                raise httpx.ReadError("cut off")

        return Messages()


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    slept: list[float] = []
    monkeypatch.setattr(tail.time, "sleep", slept.append)
    return slept


def positions(server: Server, start: str, *, count: int) -> list[int]:
    with Api("http://ledger.test", "t", transport=httpx.MockTransport(server)) as api:
        return [event["position"] for event in islice(tail.events(api, start, follow=True), count)]


def test_the_whole_log_is_read_in_pages_and_then_what_comes() -> None:
    count = 2 * tail.PAGE_EVENTS + 10
    assert positions(Server(count), "start", count=count + 2) == list(range(1, count + 3))


def test_from_now_only_what_comes_is_shown() -> None:
    assert positions(Server(5), "now", count=2) == [6, 7]


def test_from_a_cursor_what_lies_behind_it_is_shown() -> None:
    assert positions(Server(5), "3", count=3) == [4, 5, 6]


def test_a_connection_that_breaks_is_made_again_and_nothing_is_missed(pauses: list[float]) -> None:
    server = Server(1)
    server.down = 2
    assert positions(server, "start", count=6) == [1, 2, 3, 4, 5, 6]
    assert server.live_readers == 3
    assert pauses == [tail.RECONNECT_S] * 4


def test_a_server_that_refuses_ends_it() -> None:
    problem = {"status": 403, "code": "forbidden", "detail": "not yours", "hint": ""}
    transport = httpx.MockTransport(lambda _: httpx.Response(403, json=problem))
    with Api("http://ledger.test", "t", transport=transport) as api, pytest.raises(ApiError, match="not yours"):
        list(tail.events(api, "now", follow=True))


def test_in_a_pipe_each_event_is_one_line(run: Run, requests: Any) -> None:
    events = [
        event(1),
        event(2, "tool_call", {"tool": "sh", "args": {"command": "ls\x1b[2J"}}),
        event(3, "x", "a\nb"),
    ]
    requests({"GET /api/events": {"events": events, "cursor": "c"}})
    result = run("tail", "--from", "start", "--no-follow")
    assert result.output.splitlines() == [
        "2026-02-03 04:05:06  s1  comment  remark 1",
        '2026-02-03 04:05:06  s1  tool_call  {"tool":"sh","args":{"command":"ls\\u001b[2J"}}',
        "2026-02-03 04:05:06  s1  x  a b",
    ]


def test_as_json_each_event_is_one_object_a_line(run: Run, requests: Any) -> None:
    requests({"GET /api/events": {"events": [event(1), event(2)], "cursor": "c"}})
    result = run("tail", "--from", "start", "--no-follow", "--json")
    assert [json.loads(line) for line in result.output.splitlines()] == [event(1), event(2)]


def test_a_number_that_no_float_holds_stops_nothing(run: Run, requests: Any) -> None:
    text = json.dumps({"events": [event(1, "x", {"n": 0.5}), event(2)], "cursor": "c"}).replace("0.5", "1e999")
    requests({"GET /api/events": httpx.Response(200, content=text.encode())})
    result = run("tail", "--from", "start", "--no-follow")
    assert result.exit_code == 0, result.output
    assert len(result.output.splitlines()) == 2


def test_a_narrow_terminal_cuts_a_line_short(run: Run, requests: Any, on_a_terminal: Callable[[int], None]) -> None:
    requests({"GET /api/events": {"events": [event(1, "comment", {"body": "long " * 50})], "cursor": "c"}})
    on_a_terminal(40)
    (line,) = run("tail", "--from", "start", "--no-follow").output.splitlines()
    assert click.unstyle(line).endswith("…")
    assert len(click.unstyle(line)) == 40
