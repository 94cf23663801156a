"""Server-sent events: nothing that moved is missed, whenever a reader drops and comes back."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

import httpx
import pytest

from ledger.store import cursors
from tests.live.serving import (
    Server,
    assert_problem,
    event,
    opened,
    push,
    running,
    seen,
    token_of,
    wait_for_listeners,
)


@dataclass
class Message:
    event: str = ""
    id: str = ""
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def roots(self) -> set[str]:
        return set(self.data["roots"])


@contextmanager
def listening(server: Server, *roots: str, last_id: str | None = None, after: str | None = None) -> Iterator[Any]:
    """The messages of a stream on a connection of its own, which is dropped when the block ends."""
    headers = {"Authorization": f"Bearer {server.owner_token}"} | ({"Last-Event-ID": last_id} if last_id else {})
    query: dict[str, Any] = {"root": list(roots)} | ({"after": after} if after else {})
    with (
        httpx.Client(base_url=server.url, headers=headers, timeout=10, trust_env=False) as client,
        client.stream("GET", "/api/live", params=query) as answer,
    ):
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield messages(answer)


def messages(answer: httpx.Response) -> Iterator[Message]:
    message = Message()
    for line in answer.iter_lines():
        name, _, value = line.partition(": ")
        if name in ("event", "id"):
            setattr(message, name, value)
        elif name == "data":
            message.data = json.loads(value)
        elif not line and message.event:
            yield message
            message = Message()


def test_a_stream_begins_with_hello_and_a_cursor(server: Server, reader: httpx.Client) -> None:
    cursor = seen(reader, "/api/events", limit=5000)["cursor"]
    with listening(server) as stream:
        hello = next(stream)
    assert (hello.event, hello.id, hello.data) == ("hello", cursor, {"cursor": cursor})


def test_a_push_is_told_as_the_root_that_moved_and_the_cursor_behind_it(server: Server, saddle: httpx.Client) -> None:
    session_id, task_id = opened(saddle)
    with listening(server) as stream:
        next(stream)
        cursor = push(saddle, session_id, [event(0)])["cursor"]
        moved = next(stream)
    assert (moved.event, moved.id) == ("moved", cursor)
    assert moved.data == {"roots": [f"task/{task_id}"], "cursor": cursor}


def test_a_duplicate_moves_nothing(server: Server, saddle: httpx.Client) -> None:
    session_id, _ = opened(saddle)
    push(saddle, session_id, [event(0)])
    with listening(server) as stream:
        next(stream)
        push(saddle, session_id, [event(0)])
        cursor = push(saddle, session_id, [event(1)])["cursor"]
        assert next(stream).id == cursor


def test_a_reader_is_told_only_of_the_roots_it_asked_for(server: Server, saddle: httpx.Client) -> None:
    sessions = [opened(saddle) for _ in range(3)]
    wanted = [f"task/{task_id}" for _, task_id in sessions[:2]]
    with listening(server, *wanted) as stream:
        since = next(stream).id
        for session_id, _ in reversed(sessions):
            push(saddle, session_id, [event(0)])
        told: set[str] = set()
        while told != set(wanted):
            roots = next(stream).roots
            assert roots <= set(wanted)
            told |= roots
    with listening(server, wanted[0], last_id=since) as stream:
        assert next(stream).roots == {wanted[0]}


def test_who_comes_back_is_told_first_what_moved_meanwhile(server: Server, saddle: httpx.Client) -> None:
    session_id, task_id = opened(saddle)
    with listening(server) as stream:
        since = next(stream).id
    for seq in range(100):
        cursor = push(saddle, session_id, [event(seq)])["cursor"]
    with listening(server, last_id=since) as stream:
        back = next(stream)
    assert (back.event, back.id) == ("caught-up", cursor)
    assert (back.data["roots"], back.data["events"]) == ([f"task/{task_id}"], 100)


def test_who_comes_back_to_a_quiet_ledger_is_told_so(server: Server) -> None:
    with listening(server) as stream:
        since = next(stream).id
    with listening(server, last_id=since) as stream:
        back = next(stream)
    assert (back.id, back.roots, back.data["events"]) == (since, set(), 0)


def test_a_reader_that_drops_before_its_first_id_misses_nothing(
    server: Server, saddle: httpx.Client, reader: httpx.Client
) -> None:
    session_id, task_id = opened(saddle)
    page = seen(reader, f"/api/tasks/{task_id}")["cursor"]
    with listening(server, after=page):
        pass
    push(saddle, session_id, [event(0)])
    with listening(server, after=page) as stream:
        assert next(stream).roots == {f"task/{task_id}"}


def test_a_reader_that_drops_twice_misses_nothing(server: Server, saddle: httpx.Client) -> None:
    (first, first_task), (second, second_task) = opened(saddle), opened(saddle)
    with listening(server) as stream:
        start = next(stream).id
    push(saddle, first, [event(0)])
    with listening(server, last_id=start) as stream:
        middle = next(stream)
    push(saddle, second, [event(0)])
    with listening(server, last_id=middle.id) as stream:
        assert next(stream).roots == {f"task/{second_task}"}
    with listening(server, last_id=start) as stream:
        assert next(stream).roots == {f"task/{first_task}", f"task/{second_task}"}


def test_the_last_event_id_counts_more_than_the_page_it_began_with(server: Server, saddle: httpx.Client) -> None:
    session_id, _ = opened(saddle)
    with listening(server) as stream:
        page = next(stream).id
    last = push(saddle, session_id, [event(0)])["cursor"]
    with listening(server, last_id=last, after=page) as stream:
        assert next(stream).data["events"] == 0


@pytest.mark.parametrize("cursor", [cursors.encode("00112233445566ff", (3,)), "nonsense", "1234"])
def test_a_last_event_id_of_another_ledger_is_refused_and_not_misread(owner: httpx.Client, cursor: str) -> None:
    answer = owner.get("/api/live", headers={"Last-Event-ID": cursor})
    assert_problem(answer, 422, "foreign_cursor")


def test_a_reader_that_keeps_dropping_is_told_of_every_root(server: Server, saddle: httpx.Client) -> None:
    seed = SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    random = Random(seed)
    sessions = [opened(saddle) for _ in range(40)]
    written = {f"task/{task_id}" for _, task_id in sessions}
    with listening(server) as stream:
        last_id = next(stream).id

    def write() -> str:
        client, cursor = server.client(token_of(saddle)), ""
        for session_id, _ in sessions:
            cursor = push(client, session_id, [event(0)])["cursor"]
        return cursor

    told: set[str] = set()
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        while not (writing.done() and last_id == writing.result()):
            with listening(server, last_id=last_id) as stream:
                for _ in range(random.randint(1, 4)):
                    message = next(stream)
                    told |= message.roots
                    last_id = message.id
                    if writing.done() or told == written:  # nothing more comes: the last receipt is on its way
                        break
    assert told == written


def test_readers_that_left_are_not_kept(server: Server, reader: httpx.Client, saddle: httpx.Client) -> None:
    for _ in range(5):
        with listening(server):
            pass
    wait_for_listeners(reader, 0)


def test_a_stream_whose_token_is_revoked_ends_and_tells_nothing_more(
    server: Server, owner: httpx.Client, saddle: httpx.Client
) -> None:
    session_id, _ = opened(saddle)
    made = owner.post("/api/tokens", json={"role": "reader", "name": "leaving"}).json()
    with (
        server.client(made["token"]) as leaving,
        leaving.stream("GET", "/api/live") as answer,
    ):
        told = messages(answer)
        assert next(told).event == "hello"
        push(saddle, session_id, [event(0)])
        assert next(told).event == "moved"
        assert owner.delete(f"/api/tokens/{made['id']}").status_code == 204
        push(saddle, session_id, [event(1)])
        assert [message.event for message in told] == []


def test_stopping_the_server_ends_open_streams_and_asks_at_once(tmp_path: Path) -> None:
    with running(tmp_path) as server, ThreadPoolExecutor(1) as pool:
        asking = server.client()
        with listening(server) as one, listening(server) as other:
            next(one), next(other)
            asked = pool.submit(asking.post, "/api/saddle/ask", json={"wait_s": 30})
            wait_for_listeners(server.client(), 3)
            server.interrupt()
            began = time.monotonic()
            assert (list(one), list(other)) == ([], [])
            assert asked.result(5).status_code == 204
        assert server.wait() == 0, server.stderr
        assert time.monotonic() - began < 5
