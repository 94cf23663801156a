from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ledger.client.api import ApiError
from ledger.client.draining import Drain
from ledger.client.outbox import NEXT_SEQ, Backlog, Outbox
from ledger.events.decode import new_event
from tests.unit.client.served import Ledger, Trouble, problem

ROOM = 64 * 2**20


class World:
    def __init__(self, path: Path) -> None:
        self.ledger = Ledger()
        self.outbox = Outbox(path, bytes_max=ROOM)
        self.outbox.open_session("s", {"task": {"title": "T"}, "contiguous": True})
        self.backlog = Backlog(path, bytes_max=ROOM)

    def drain(self) -> Drain:
        return Drain(self.outbox.path, ROOM, self.ledger.api)

    def emit(self) -> None:
        self.outbox.add("s", [new_event(NEXT_SEQ, "note", "model", {})])

    def wait_until_drained(self) -> None:
        wait_for(self.backlog.is_drained)

    def chunks(self) -> list[list[int]]:
        """The seqs of each chunk that was pushed."""
        return [[event["seq"] for event in body["events"]] for path, body in self.ledger.requests if "events" in body]


def wait_for(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "outbox.db")
    yield world
    world.outbox.close()
    world.backlog.close()


def in_turn(*troubles: Trouble) -> Callable[[str, dict[str, Any]], Trouble]:
    left = list(troubles)
    return lambda path, body: left.pop(0) if left and path.endswith("chunks") else None


def test_what_is_emitted_goes_out_with_and_without_a_call(world: World) -> None:
    with world.drain() as drain:
        world.emit()
        drain.wake()
        world.wait_until_drained()
        world.emit()  # as another process does
        world.wait_until_drained()
        assert drain.trouble is None
    assert world.chunks() == [[0], [1]] or world.chunks() == [[], [0], [1]]


def test_after_an_outage_each_session_is_asked_how_it_stands(world: World) -> None:
    world.emit()
    with world.drain() as drain:
        world.wait_until_drained()
        world.ledger.before = in_turn(httpx.ConnectError("refused"))
        world.emit()
        drain.wake()
        world.wait_until_drained()
        wait_for(lambda: drain.trouble is None)
    assert world.chunks()[-2:] == [[], [1]]


def test_one_answer_that_is_cut_off_is_no_outage_and_two_in_a_row_are(world: World) -> None:
    cut = httpx.ReadError("cut")
    world.emit()
    with world.drain() as drain:
        world.wait_until_drained()
        for troubles, pushed in [([cut], [[1], [1]]), ([cut, cut], [[2], [2], [], [2]])]:
            before = len(world.chunks())
            world.ledger.before = in_turn(*troubles)
            world.emit()
            drain.wake()
            world.wait_until_drained()
            assert world.chunks()[before:] == pushed


def test_a_long_wait_that_the_server_asks_for_is_kept_to_and_ends_with_the_drain(world: World) -> None:
    asked = threading.Event()

    def busy(path: str, body: dict[str, Any]) -> Trouble:
        asked.set()
        return problem(429, "overloaded", {"Retry-After": "3600"})

    world.ledger.before = busy
    world.emit()
    with world.drain() as drain:
        assert asked.wait(30)
        wait_for(lambda: drain.trouble)
        assert isinstance(drain.trouble, ApiError)
        assert drain.trouble.retry_after_s == 3600
        drain.wake()
        drain.stop(5)
    assert len(world.ledger.requests) == 1
    assert not any(thread.name == "ledgerd outbox" for thread in threading.enumerate())


def test_of_two_drains_of_an_outbox_one_sends_and_the_other_takes_its_place(world: World) -> None:
    first, second = world.drain(), world.drain()
    with second:
        world.emit()
        world.wait_until_drained()
        with first:
            world.emit()
            world.wait_until_drained()
        second.stop(5)
        with world.drain():
            world.emit()
            world.wait_until_drained()
    assert world.ledger.seqs("s") == [0, 1, 2]
    assert [seq for chunk in world.chunks() for seq in chunk] == [0, 1, 2]
