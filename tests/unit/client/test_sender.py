from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from ledger.client import sender as sending
from ledger.client.api import ApiError
from ledger.client.outbox import NEXT_SEQ, Backlog, Outbox
from ledger.client.sender import DOUBTED_IN_A_ROUND_MAX, Sender
from ledger.events.decode import new_event
from ledger.events.model import END_SEQ, NewEvent
from tests.unit.client.served import Ledger, Trouble, problem

ROOM = 64 * 2**20
CHUNKS, RESULTS = "/api/saddle/chunks", "/api/saddle/results"


def note(n: int = 0, seq: int = NEXT_SEQ, **more: Any) -> NewEvent:
    return new_event(seq, "note", "model", {"n": n, **more}, 1_800_000_000_123_000_000)


class World:
    """An outbox, a ledger, and a sender between them. `now` is the sender's clock, in seconds."""

    def __init__(self, path: Path) -> None:
        self.now = 0.0
        self.ledger = Ledger()
        self.outbox = Outbox(path, bytes_max=ROOM)
        self.backlog = Backlog(path, bytes_max=ROOM)
        self.sender = Sender(self.backlog, self.ledger.api(), now=lambda: self.now, random=Random(1))

    def open(self, session_id: str = "s", events: int = 0, **fields: Any) -> None:
        self.outbox.open_session(session_id, {"task": {"title": "T"}, "contiguous": True, **fields})
        if events:
            self.outbox.add(session_id, [note(n) for n in range(events)])

    def end(self, session_id: str = "s", state: str = "done") -> None:
        self.outbox.end(session_id, new_event(NEXT_SEQ, "result", "", {"state": state, "summary": "so"}))

    def drain(self, rounds_max: int = 100) -> None:
        for _ in range(rounds_max):
            if not self.sender.round():
                return
        raise AssertionError("it never comes to an end")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "outbox.db")
    yield world
    world.outbox.close()
    world.backlog.close()


def once(trouble: Trouble) -> Callable[[str, dict[str, Any]], Trouble]:
    left = [trouble]
    return lambda path, body: left.pop() if left else None


def test_opening_events_and_result_go_out_in_this_order(world: World) -> None:
    world.open(events=3)
    world.end()
    world.drain()
    (first, chunk), (second, result) = world.ledger.requests
    assert (first, second) == (CHUNKS, RESULTS)
    assert chunk["open"] == {"task": {"title": "T"}, "contiguous": True}
    assert [event["seq"] for event in chunk["events"]] == [0, 1, 2]
    assert chunk["events"][1] == {
        "seq": 1,
        "kind": "note",
        "actor": "model",
        "payload": {"n": 1},
        "at": "2027-01-15T08:00:00.123Z",
    }
    assert (result["state"], result["summary"], "seq" in result) == ("done", "so", False)
    assert world.backlog.is_drained()


def test_what_was_acknowledged_is_not_sent_again(world: World) -> None:
    world.open(events=2)
    world.drain()
    world.outbox.add("s", [note(2)])
    world.drain()
    assert [[event["seq"] for event in body["events"]] for body in world.ledger.bodies()] == [[0, 1], [2]]
    assert "open" not in world.ledger.bodies()[1]


def test_batches_are_sized_by_bytes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "BATCH_BYTES_MAX", 10_000)
    world.open()
    world.outbox.add("s", [note(n, fill="x" * 3000) for n in range(20)])
    world.drain()
    assert world.ledger.seqs("s") == list(range(20))
    assert max(world.ledger.bytes) < 11_000
    assert len(world.ledger.requests) == 7


def test_an_answer_that_was_lost_after_the_commit_changes_nothing(world: World) -> None:
    world.ledger.after = once(httpx.ReadError("cut"))
    world.open(events=3)
    world.end()
    with pytest.raises(ApiError):
        world.sender.round()
    world.drain()
    assert world.ledger.seqs("s") == [0, 1, 2, END_SEQ]
    assert world.backlog.dead_letters() == []


@pytest.mark.parametrize(
    "trouble",
    [
        httpx.ConnectError("refused"),
        problem(429, "overloaded", {"Retry-After": "7"}),
        problem(503, "storage_full"),
        problem(401, "unauthenticated"),
        problem(403, "forbidden"),
        httpx.Response(404, text="<html>"),
        httpx.Response(422, text="<html>"),
        httpx.Response(200, text="<html>"),
        httpx.Response(200, json={"ok": True}),
    ],
)
def test_a_server_that_is_away_or_refuses_the_sender_costs_nothing(world: World, trouble: Trouble) -> None:
    world.open(events=2)
    world.ledger.before = once(trouble)
    with pytest.raises(ApiError) as caught:
        world.sender.round()
    assert caught.value.retry_after_s == (7.0 if caught.value.status == 429 else None)
    assert world.backlog.standing().waiting == 2
    world.drain()
    assert world.ledger.seqs("s") == [0, 1]
    assert world.backlog.standing().refused == []


def test_rejected_events_become_dead_letters_and_hold_up_nothing(world: World) -> None:
    world.open(events=3)
    receipt = {"conflicts": [], "high_seq": 2, "missing": [[1, 1]]}
    rejected = [{"index": 1, "seq": 1, "code": "nested_too_deep", "detail": "201 levels"}]
    world.ledger.after = once(httpx.Response(200, json={**receipt, "rejected": rejected}))
    world.drain()
    [letter] = world.backlog.dead_letters()
    assert (letter.session_id, letter.event.seq, letter.code) == ("s", 1, "nested_too_deep")
    world.outbox.add("s", [note()])
    world.drain()
    assert world.ledger.requests[-1][1]["events"][0]["seq"] == 3


def test_conflicts_become_dead_letters_and_the_rest_is_stored(world: World) -> None:
    world.open(events=3)
    world.ledger.sessions["s"] = {1: {"seq": 1, "kind": "other"}, END_SEQ: {"seq": END_SEQ, "state": "failed"}}
    world.end(state="done")
    world.drain()
    letters = world.backlog.dead_letters()
    assert [(letter.event.seq, letter.code) for letter in letters] == [(END_SEQ, "conflict"), (1, "conflict")]
    assert world.ledger.seqs("s") == [0, 1, 2, END_SEQ]
    assert world.backlog.is_drained()


@pytest.mark.parametrize("status", [400, 413, 422])
def test_the_one_event_that_a_server_cannot_bear_is_found_among_many(world: World, status: int) -> None:
    def poisoned(path: str, body: dict[str, Any]) -> Trouble:
        return problem(status, "poison") if any(e["payload"]["n"] == 13 for e in body["events"]) else None

    world.ledger.before = poisoned
    world.open(events=40)
    world.drain()
    assert world.ledger.seqs("s") == [n for n in range(40) if n != 13]
    [letter] = world.backlog.dead_letters()
    assert (letter.event.seq, letter.code) == (13, "poison")


@pytest.mark.parametrize(
    ("status", "code"), [(404, "unknown_task"), (409, "session_elsewhere"), (422, "invalid_field")]
)
def test_a_session_that_cannot_be_opened_is_put_aside_whole_and_the_others_go_on(
    world: World, status: int, code: str
) -> None:
    world.open("bad", events=2)
    world.open("good", events=2)
    world.ledger.before = lambda path, body: problem(status, code) if body["session_id"] == "bad" else None
    world.drain()
    assert world.ledger.seqs("good") == [0, 1]
    [refused] = world.backlog.standing().refused
    assert (refused.session_id, refused.code, refused.detail) == ("bad", code, f"it was {code}")
    assert world.backlog.dead_letters() == []
    world.ledger.before = once(None)
    assert world.backlog.forgive() == 1
    world.drain()
    assert world.ledger.seqs("bad") == [0, 1]


def test_a_server_error_over_one_session_rests_it_and_the_others_go_on(world: World) -> None:
    world.open("bad", events=1)
    world.open("good", events=1)
    world.ledger.before = lambda path, body: problem(500, "internal_error") if body["session_id"] == "bad" else None
    world.drain()
    assert world.ledger.seqs("good") == [0]
    tries = len(world.ledger.requests)
    assert not world.sender.round()
    world.now += 60
    world.ledger.before = once(None)
    world.drain()
    assert world.ledger.seqs("bad") == [0]
    assert len(world.ledger.requests) == tries + 1


def restore(ledger: Ledger, **sessions: int) -> None:
    """Takes the ledger back to a backup: of each session the first so many events, of the others nothing."""
    ledger.sessions = {id: dict(list(ledger.sessions[id].items())[:count]) for id, count in sessions.items()}


def test_a_restored_server_that_forgot_a_session_is_told_all_of_it_again(world: World) -> None:
    for session_id in ("a", "b"):
        world.open(session_id, events=3)
        world.end(session_id)
    world.drain()
    restore(world.ledger, b=1)
    world.open("c", events=1)
    world.outbox.add("a", [note(3)])
    world.drain()
    assert world.ledger.seqs("a") == [0, 1, 2, 3, END_SEQ]
    assert world.ledger.seqs("b") == [0, 1, 2, END_SEQ]


def test_a_hole_in_what_was_acknowledged_is_filled_and_the_other_sessions_are_asked_too(world: World) -> None:
    world.open("a", events=5)
    world.open("b", events=5)
    world.drain()
    restore(world.ledger, a=2, b=3)
    world.outbox.add("a", [note(5)])
    world.drain()
    assert world.ledger.seqs("a") == [0, 1, 2, 3, 4, 5]
    assert world.ledger.seqs("b") == [0, 1, 2, 3, 4]


def test_after_doubt_a_server_that_lost_nothing_is_sent_only_what_is_new(world: World) -> None:
    world.open(events=3)
    world.drain()
    world.backlog.doubt_all()
    world.outbox.add("s", [note(3)])
    world.drain()
    assert [len(body["events"]) for body in world.ledger.bodies()] == [3, 0, 1]


def test_what_is_new_does_not_wait_for_all_that_are_only_to_be_asked(world: World) -> None:
    for n in range(50):
        world.open(f"old-{n}", events=1)
    world.drain()
    world.backlog.doubt_all()
    world.open("new", events=1)
    before = len(world.ledger.bodies())
    world.sender.round()
    assert world.ledger.seqs("new") == [0]
    assert len(world.ledger.bodies()) - before == 1 + DOUBTED_IN_A_ROUND_MAX
    world.drain()
    assert all(session.verified for session in world.backlog.waiting())


def test_a_session_that_was_claimed_and_is_not_known_any_more_is_put_aside(world: World) -> None:
    world.outbox.adopt("claimed", "12")
    world.outbox.add("claimed", [note()])
    world.drain()
    [refused] = world.backlog.standing().refused
    assert refused.code == "unknown_session"


def test_whatever_goes_wrong_on_the_way_the_ledger_holds_each_thing_once(world: World) -> None:
    seed = Random().randrange(2**32)
    print(f"seed {seed}")
    random = Random(seed)

    def fault(path: str, body: dict[str, Any]) -> Trouble:
        troubles: list[Trouble] = [
            httpx.ReadError("cut"),
            problem(503, "storage_full"),
            problem(500, "internal_error"),
        ]
        return random.choice(troubles) if random.random() < 0.3 else None

    world.ledger.before = world.ledger.after = fault
    sessions = ["a", "b", "c"]
    for session_id in sessions:
        world.open(session_id)
    for _ in range(200):
        world.now += 20
        match random.choice(["emit", "emit", "round", "restore", "doubt"]):
            case "emit":
                world.outbox.add(random.choice(sessions), [note(random.randrange(9))] * random.randint(1, 3))
            case "round":
                with suppress(ApiError):
                    world.sender.round()
            case "restore" if random.random() < 0.2:
                kept = {id: random.randint(0, len(held)) for id, held in world.ledger.sessions.items()}
                restore(world.ledger, **{id: count for id, count in kept.items() if random.random() < 0.7})
                world.backlog.doubt_all()
            case "doubt":
                world.backlog.doubt_all()
    world.ledger.before = world.ledger.after = once(None)
    world.now += 60
    world.drain()
    for session_id in sessions:
        emitted = world.outbox.add(session_id, [note()]).seqs[0]
        assert world.ledger.seqs(session_id) == list(range(emitted))
    assert world.backlog.dead_letters() == []
