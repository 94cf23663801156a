from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.client.outbox import KEPT_S, NEXT_SEQ, Backlog, Outbox
from ledger.errors import StreamMoved
from ledger.events.decode import new_event
from ledger.events.model import NewEvent

ROOM = 8 * 2**20


class Clock:
    now = 1_800_000_000 * 10**9

    def __call__(self) -> int:
        return self.now


def event(kind: str, n: int = 0) -> NewEvent:
    return new_event(NEXT_SEQ, kind, "runner", {"n": n})


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def outbox(tmp_path: Path, clock: Clock) -> Iterator[Outbox]:
    outbox = Outbox(tmp_path / "outbox.db", bytes_max=ROOM, clock=clock)
    outbox.open_session("kept", {"task_id": "t"}, kept=True)
    outbox.open_session("other", {"task_id": "u"})
    yield outbox
    outbox.close()


@pytest.fixture
def backlog(outbox: Outbox, clock: Clock) -> Iterator[Backlog]:
    backlog = Backlog(outbox.path, bytes_max=ROOM, clock=clock)
    yield backlog
    backlog.close()


def acknowledge_all(backlog: Backlog) -> None:
    for session in backlog.waiting():
        backlog.opening_acknowledged(session)
        backlog.acknowledged(session, session.high_seq)


def test_a_kept_session_is_read_back_in_the_order_of_its_events_with_its_task(outbox: Outbox) -> None:
    outbox.add("kept", [event("tick", 1), event("tick", 2)])
    outbox.add("other", [event("tick", 3)])
    read = outbox.kept()
    assert [(one.session_id, one.seq, one.kind) for one in read] == [
        ("kept", -1, "session.opened"),
        ("kept", 0, "tick"),
        ("kept", 1, "tick"),
    ]
    assert {(one.task_id, one.root) for one in read} == {("t", "task/t")}
    assert outbox.kept("kept") == read
    assert outbox.kept("other") == []
    assert [one.seq for one in outbox.kept("kept", kinds=("tick",), after_seq=0)] == [1]


def test_a_conditional_append_of_one_who_has_not_read_on_adds_nothing(outbox: Outbox) -> None:
    outbox.add("kept", [event("tick", 1), event("tick", 2)], expected_seq=-1)
    with pytest.raises(StreamMoved) as moved:
        outbox.add("kept", [event("tick", 3), event("tick", 4)], expected_seq=0)
    assert moved.value.last_seq == 1
    assert outbox.add("kept", [event("tick", 3)], expected_seq=1).seqs == [2]


def test_of_a_kept_session_only_what_was_said_along_the_way_is_ever_dropped(
    outbox: Outbox, backlog: Backlog, clock: Clock
) -> None:
    for session_id in ("kept", "other"):
        outbox.add(session_id, [event("tick"), event("output"), event("usage"), event("tool_call")])
    acknowledge_all(backlog)
    clock.now += (KEPT_S + 1) * 10**9
    backlog.drop_old()
    assert [one.kind for one in outbox.kept()] == ["session.opened", "tick", "usage"]
    assert backlog.standing().kept == 2


def test_a_kept_session_is_there_after_it_has_ended_long_ago(outbox: Outbox, backlog: Backlog, clock: Clock) -> None:
    outbox.end("kept", new_event(0, "result", "runner", {"state": "done"}))
    acknowledge_all(backlog)
    [session] = [one for one in backlog.waiting() if one.session_id == "kept"]
    backlog.end_acknowledged(session)
    clock.now += (KEPT_S + 1) * 10**9
    backlog.drop_old()
    assert [one.kind for one in outbox.kept()] == ["session.opened", "result"]


def test_what_the_server_rejects_of_a_kept_session_is_a_dead_letter_and_still_read_back(
    outbox: Outbox, backlog: Backlog
) -> None:
    outbox.add("kept", [event("tick", 1), event("tick", 2)])
    session = backlog.waiting()[0]
    [first, _] = backlog.batch(session, bytes_max=10**6, events_max=10)
    backlog.bury(session, [(first, "payload_too_large", "…")])
    assert [one.seq for one in outbox.kept()] == [-1, 0, 1]
    assert [letter.event.seq for letter in backlog.dead_letters()] == [0]


def test_an_outbox_of_the_first_version_is_brought_up(tmp_path: Path) -> None:
    path = tmp_path / "outbox.db"
    with Outbox(path) as outbox:
        outbox.open_session("s", {"task_id": "t"})
    db = sqlite3.connect(path)
    db.executescript("ALTER TABLE sending DROP COLUMN kept; UPDATE outbox SET version = 1;")
    db.close()
    for _ in range(2):
        with Outbox(path) as outbox:
            outbox.add("s", [event("tick")])
            assert outbox.kept() == []
