"""What saddles push, and what they are told of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.live.serving import (
    Server,
    assert_problem,
    created,
    event,
    events_of,
    fresh,
    opened,
    push,
    result,
    seen,
    token_of,
)

RECEIPT = {"stored", "duplicates", "conflicts", "rejected", "repaired", "high_seq", "cursor"}


# Opening sessions


def test_opening_a_session_answers_201_and_again_200_with_the_same(saddle: httpx.Client, owner: httpx.Client) -> None:
    task_id = created(owner, "tasks")["id"]
    body = {
        "session_id": fresh("session"),
        "task_id": task_id,
        "agent": "someone",
        "model": "m",
        "cwd": "/",
        "host": "h",
    }
    first, again = (saddle.post("/api/saddle/sessions", json=body) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json() == {"session_id": body["session_id"], "task_id": task_id}


def test_a_session_is_given_an_id_where_it_brings_none(saddle: httpx.Client, reader: httpx.Client) -> None:
    answer = saddle.post("/api/saddle/sessions", json={"task": {"title": "unnamed"}})
    assert answer.status_code == 201
    assert seen(reader, f"/api/sessions/{answer.json()['session_id']}")["task_id"] == answer.json()["task_id"]


def test_a_session_works_on_one_task_for_ever(saddle: httpx.Client, owner: httpx.Client) -> None:
    session_id, _ = opened(saddle)
    elsewhere = created(owner, "tasks")["id"]
    body = {"session_id": session_id, "task_id": elsewhere}
    assert_problem(saddle.post("/api/saddle/sessions", json=body), 409, "session_elsewhere")
    with_chunk = {"session_id": session_id, "events": [event(0)], "open": {"task_id": elsewhere}}
    assert_problem(saddle.post("/api/saddle/chunks", json=with_chunk), 409, "session_elsewhere")
    assert events_of(owner, session_id) == []


def test_an_ad_hoc_task_is_made_with_its_session(saddle: httpx.Client, reader: httpx.Client) -> None:
    _, task_id = opened(saddle, task={"title": "Mend the fence"})
    task = seen(reader, f"/api/tasks/{task_id}")
    assert (task["title"], task["kind"], task["status"]) == ("Mend the fence", "task", "working")


def test_an_ad_hoc_task_is_found_again_by_its_id(saddle: httpx.Client, reader: httpx.Client) -> None:
    named = {"id": fresh("task"), "title": "Only once"}
    first, one = opened(saddle, task=named)
    second, other = opened(saddle, task=named)
    assert one == other == named["id"]
    sessions = seen(reader, f"/api/tasks/{one}")["sessions"]
    assert [session["session_id"] for session in sessions] == [first, second]


def test_an_ad_hoc_task_may_lie_under_a_goal(saddle: httpx.Client, owner: httpx.Client) -> None:
    goal_id = created(owner, "goals")["id"]
    _, task_id = opened(saddle, task={"title": "of the goal", "goal_id": goal_id})
    assert [task["id"] for task in seen(owner, f"/api/goals/{goal_id}")["tasks"]] == [task_id]


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({}, 422, "invalid_field"),
        ({"task_id": "nowhere"}, 404, "unknown_task"),
        ({"task": {"title": "x", "goal_id": "nowhere"}}, 404, "unknown_goal"),
        ({"task_id": "1", "task": {"title": "x"}}, 422, "invalid_field"),
        ({"session_id": "@goal/1", "task": {"title": "x"}}, 422, "invalid_field"),
        ({"session_id": "x" * 201, "task": {"title": "x"}}, 422, "invalid_field"),
        ({"session_id": "", "task": {"title": "x"}}, 422, "invalid_field"),
        ({"session_id": True, "task": {"title": "x"}}, 422, "invalid_field"),
        ({"session_id": "a\u0007b", "task": {"title": "x"}}, 422, "invalid_field"),
        ({"task": {"id": "a/b", "title": "x"}}, 422, "invalid_field"),
    ],
)
def test_an_opening_that_cannot_be_is_refused(
    saddle: httpx.Client, fields: dict[str, Any], status: int, code: str
) -> None:
    body = {"session_id": fresh("session"), **fields}
    assert_problem(saddle.post("/api/saddle/sessions", json=body), status, code)


def test_an_integer_is_taken_as_its_decimal_string(saddle: httpx.Client, reader: httpx.Client) -> None:
    opened(saddle, session_id=90210, task={"id": 90211, "title": "numbered"})
    push(saddle, "90210", [event(0)])
    assert seen(reader, "/api/sessions/90210")["task_id"] == "90211"


def test_an_id_may_hold_slashes_spaces_and_other_scripts(saddle: httpx.Client, reader: httpx.Client) -> None:
    session_id, _ = opened(saddle, session_id="host/проект dir/№ 7?")
    push(saddle, session_id, [event(0)])
    name = quote(session_id, safe="")
    assert seen(reader, f"/api/sessions/{name}")["session_id"] == session_id
    assert len(events_of(reader, name)) == 1


def test_a_session_resumed_under_a_new_id_is_the_same_task(saddle: httpx.Client, reader: httpx.Client) -> None:
    first, task_id = opened(saddle)
    push(saddle, first, [event(0, "comment", {"body": "before the break"})])
    second, _ = opened(saddle, task_id=task_id, resumed_from=first)
    push(saddle, second, [event(1, "comment", {"body": "after it"})])
    task = seen(reader, f"/api/tasks/{task_id}")
    assert [row["text"] for row in task["events"] if row["kind"] == "comment"] == ["before the break", "after it"]
    assert [session["resumed_from"] for session in task["sessions"]] == [None, first]


# Pushing chunks


def test_a_receipt_has_exactly_these_fields(saddle: httpx.Client) -> None:
    plain, _ = opened(saddle)
    whole, _ = opened(saddle, contiguous=True)
    receipt = push(saddle, plain, [event(5001), event(5002)])
    assert set(receipt) == RECEIPT
    assert set(push(saddle, whole, [event(0)])) == RECEIPT | {"missing"}
    assert receipt | {"cursor": ""} == {
        "stored": 2,
        "duplicates": 0,
        "conflicts": [],
        "rejected": [],
        "repaired": [],
        "high_seq": 5002,
        "cursor": "",
    }


def test_a_chunk_pushed_again_stores_nothing(saddle: httpx.Client, reader: httpx.Client) -> None:
    session_id, _ = opened(saddle)
    events = [event(seq) for seq in range(20)]
    first, again = push(saddle, session_id, events), push(saddle, session_id, events)
    assert (first["stored"], again["stored"], again["duplicates"]) == (20, 0, 20)
    assert again["cursor"] == first["cursor"]
    assert len(events_of(reader, session_id)) == 20


def test_the_same_payload_in_another_spelling_is_a_duplicate(saddle: httpx.Client) -> None:
    session_id, _ = opened(saddle)
    push(saddle, session_id, [event(0, payload={"a": 1, "b": "é", "c": 100})])
    text = b'{"session_id":"%s","events":[{"seq":0,"actor":"model","kind":"message"' % session_id.encode()
    text += b', "payload": {"c": 1e2, "b": "\\u00e9",\n "a": 1}}]}'
    assert saddle.post("/api/saddle/chunks", content=text).json()["duplicates"] == 1


def test_the_same_key_with_other_content_is_a_conflict_and_the_first_stays(
    saddle: httpx.Client, reader: httpx.Client
) -> None:
    session_id, _ = opened(saddle)
    push(saddle, session_id, [event(7, payload={"text": "first"})])
    receipt = push(saddle, session_id, [event(7, payload={"text": "second"}), event(8)])
    assert (receipt["stored"], receipt["duplicates"], receipt["conflicts"]) == (1, 0, [{"seq": 7}])
    assert events_of(reader, session_id)[0]["payload"] == {"text": "first"}
    [lost] = seen(reader, f"/api/sessions/{session_id}")["conflicts"]
    assert {"seq": 7, "kind": "message", "actor": "model", "payload": {"text": "second"}}.items() <= lost.items()
    assert set(lost) == {"seq", "kind", "actor", "payload", "received_at"}


def test_one_chunk_may_hold_a_key_twice(saddle: httpx.Client) -> None:
    session_id, _ = opened(saddle)
    receipt = push(saddle, session_id, [event(0), event(0), event(0, payload={"other": 1})])
    assert (receipt["stored"], receipt["duplicates"], receipt["conflicts"]) == (1, 1, [{"seq": 0}])


def test_an_empty_chunk_is_a_question_how_far_the_session_stands(saddle: httpx.Client) -> None:
    session_id, _ = opened(saddle)
    assert push(saddle, session_id, [])["high_seq"] is None
    push(saddle, session_id, [event(3)])
    assert push(saddle, session_id, [])["high_seq"] == 3


def test_one_request_opens_and_pushes(saddle: httpx.Client, reader: httpx.Client) -> None:
    session_id, opening = fresh("session"), {"task": {"title": "in one go"}, "model": "m"}
    first = push(saddle, session_id, [event(0)], open=opening)
    again = push(saddle, session_id, [event(0)], open=opening)
    assert (first["stored"], again["duplicates"], again["conflicts"]) == (1, 1, [])
    assert seen(reader, f"/api/sessions/{session_id}")["model"] == "m"


def test_opening_again_with_other_fields_is_a_conflict_in_the_receipt(saddle: httpx.Client) -> None:
    session_id, opening = fresh("session"), {"task": {"title": "in one go"}}
    push(saddle, session_id, [event(0)], open={**opening, "model": "one"})
    assert push(saddle, session_id, [event(1)], open={**opening, "model": "two"})["conflicts"] == [{"seq": -1}]


def test_a_chunk_for_a_session_that_nobody_opened_is_refused(saddle: httpx.Client, reader: httpx.Client) -> None:
    session_id = fresh("session")
    body = {"session_id": session_id, "events": [event(0)]}
    problem = assert_problem(saddle.post("/api/saddle/chunks", json=body), 404, "unknown_session")
    assert "open" in problem["hint"]
    assert_problem(reader.get(f"/api/sessions/{session_id}"), 404, "unknown_session")


def test_the_ledgers_own_streams_are_not_written_by_saddles(saddle: httpx.Client, owner: httpx.Client) -> None:
    task_id = created(owner, "tasks")["id"]
    body = {"session_id": f"@task/{task_id}", "events": [event(1, "task.cancelled", {})]}
    for client in (saddle, owner):
        assert_problem(client.post("/api/saddle/chunks", json=body), 422, "invalid_field")
    assert seen(owner, f"/api/tasks/{task_id}")["status"] == "queued"


def test_kinds_that_only_the_ledger_may_say_change_nothing_when_a_session_says_them(
    saddle: httpx.Client, owner: httpx.Client
) -> None:
    session_id, task_id = opened(saddle)
    said = ["task.cancelled", "task.requeued", "goal.failed", "session.opened", "task.blocked"]
    assert push(saddle, session_id, [event(seq, kind, {}) for seq, kind in enumerate(said)])["stored"] == 5
    task = seen(owner, f"/api/tasks/{task_id}")
    assert (task["status"], task["attempt"], task["blocks"]) == ("working", 1, [])


def test_a_session_that_says_it_is_contiguous_is_told_what_is_missing(
    saddle: httpx.Client, reader: httpx.Client
) -> None:
    session_id, task_id = opened(saddle, contiguous=True)
    receipt = push(saddle, session_id, [event(seq) for seq in (0, 1, 5, 9)])
    assert receipt["missing"] == [[2, 4], [6, 8]]
    assert seen(reader, f"/api/sessions/{session_id}")["missing"] == [[2, 4], [6, 8]]
    assert seen(reader, f"/api/tasks/{task_id}")["integrity"]["missing"] == 6
    assert push(saddle, session_id, [event(seq) for seq in (2, 3, 4, 6, 7, 8)])["missing"] == []
    assert result(saddle, session_id, "done")["stored"] == 1  # the end slot makes no gap
    assert push(saddle, session_id, [])["missing"] == []


def test_a_session_without_it_may_have_gaps(saddle: httpx.Client, reader: httpx.Client) -> None:
    session_id, _ = opened(saddle)
    assert "missing" not in push(saddle, session_id, [event(1), event(2**63 - 2)])
    assert seen(reader, f"/api/sessions/{session_id}")["missing"] == []


def test_the_same_chunk_twice_at_once_is_stored_once_and_the_receipts_add_up(
    server: Server, saddle: httpx.Client, reader: httpx.Client
) -> None:
    session_id, _ = opened(saddle)
    events = [event(seq) for seq in range(500)]
    clients = [server.client(token_of(saddle)) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        receipts = list(pool.map(lambda client: push(client, session_id, events), clients))
    assert sum(receipt["stored"] for receipt in receipts) == 500
    assert sum(receipt["duplicates"] for receipt in receipts) == 1500
    assert [one["seq"] for one in events_of(reader, session_id)] == list(range(500))


def test_how_often_things_came_is_counted_beside_the_log(saddle: httpx.Client, reader: httpx.Client) -> None:
    session_id, task_id = opened(saddle)
    push(saddle, session_id, [event(5)])
    push(saddle, session_id, [event(5), event(2)])
    push(saddle, session_id, [event(5, payload={"other": 1})])
    result(saddle, session_id, "done")
    result(saddle, session_id, "done")
    wanted = {"deliveries": 5, "duplicates": 2, "conflicts": 1, "late": 1, "results_repeated": 1}
    assert seen(reader, f"/api/sessions/{session_id}")["deliveries"] == wanted
    integrity = seen(reader, f"/api/tasks/{task_id}")["integrity"]
    assert {"deliveries": 5, "duplicates": 2, "conflicts": 1, "missing": 0}.items() <= integrity.items()


# Pushing results


def test_a_terminal_result_needs_no_seq_and_its_receipt_says_how_things_stand(
    saddle: httpx.Client, owner: httpx.Client
) -> None:
    session_id, task_id = opened(saddle)
    assert result(saddle, session_id, "failed", summary="The tests are red") == {
        "stored": 1,
        "duplicate": False,
        "conflict": False,
        "task": {"id": task_id, "status": "failed"},
        "goal": None,
    }
    task = seen(owner, f"/api/tasks/{task_id}")
    assert (task["status"], task["summary"]) == ("failed", "The tests are red")


@pytest.mark.parametrize("state", ["working", "waiting", "suspended"])
def test_a_state_that_is_not_the_end_needs_a_seq(saddle: httpx.Client, owner: httpx.Client, state: str) -> None:
    session_id, task_id = opened(saddle)
    body = {"session_id": session_id, "state": state}
    assert_problem(saddle.post("/api/saddle/results", json=body), 422, "seq_required")
    assert result(saddle, session_id, state, seq=4)["task"] == {"id": task_id, "status": state}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"state": "over"}, "invalid_field"),
        ({"state": "done", "seq": -1}, "invalid_seq"),
        ({"state": "done", "seq": 2**63 - 1}, "invalid_seq"),
        ({"state": "done", "seq": 2**64}, "invalid_seq"),
        ({"state": "done", "seq": "5"}, "invalid_field"),
        ({"state": "done", "seq": 5.0}, "invalid_field"),
        ({"state": "done", "seq": True}, "invalid_field"),
        ({}, "invalid_field"),
    ],
)
def test_a_result_that_cannot_be_is_refused(
    saddle: httpx.Client, reader: httpx.Client, fields: dict[str, Any], code: str
) -> None:
    session_id, _ = opened(saddle)
    assert_problem(saddle.post("/api/saddle/results", json={"session_id": session_id, **fields}), 422, code)
    assert events_of(reader, session_id) == []


def test_a_failure_repeated_is_one_row(saddle: httpx.Client, reader: httpx.Client) -> None:
    session_id, task_id = opened(saddle)
    receipts = [result(saddle, session_id, "failed", summary="no disk") for _ in range(115)]
    assert [receipt["stored"] for receipt in receipts] == [1] + [0] * 114
    assert all(receipt["duplicate"] for receipt in receipts[1:])
    rows = seen(reader, f"/api/tasks/{task_id}")["events"]
    assert [row["kind"] for row in rows].count("task-failed") == 1


def test_a_failure_said_by_a_churned_session_is_the_same_row(saddle: httpx.Client, reader: httpx.Client) -> None:
    session_id, task_id = opened(saddle)
    result(saddle, session_id, "failed", summary="no disk")
    churned, _ = opened(saddle, task_id=task_id)
    assert result(saddle, churned, "failed", summary="no disk")["stored"] == 1
    task = seen(reader, f"/api/tasks/{task_id}")
    [row] = [row for row in task["events"] if row["kind"] == "task-failed"]
    assert (row["copies"], task["attempt"], task["summary"]) == (2, 1, "no disk")


@pytest.mark.parametrize(("first", "later"), [("failed", "working"), ("cancelled", "done"), ("done", "failed")])
def test_what_comes_after_the_end_is_consumed(
    saddle: httpx.Client, reader: httpx.Client, first: str, later: str
) -> None:
    session_id, task_id = opened(saddle)
    result(saddle, session_id, first, summary="the first word")
    receipt = result(saddle, session_id, later, summary="the last word", seq=9)
    assert (receipt["stored"], receipt["task"]["status"]) == (1, first)
    conflicting = result(saddle, session_id, "done" if first == "failed" else "failed", summary="too late")
    assert (conflicting["stored"], conflicting["conflict"], conflicting["task"]["status"]) == (0, True, first)
    task = seen(reader, f"/api/tasks/{task_id}")
    assert (task["status"], task["summary"], len(task["attempts"])) == (first, "the first word", 1)


def test_events_after_the_end_are_stored_and_shown(saddle: httpx.Client, reader: httpx.Client) -> None:
    session_id, task_id = opened(saddle)
    result(saddle, session_id, "done")
    assert push(saddle, session_id, [event(5001, "comment", {"body": "P.S."})])["stored"] == 1
    task = seen(reader, f"/api/tasks/{task_id}")
    assert task["status"] == "done"
    assert "P.S." in [row["text"] for row in task["events"]]


def test_a_result_for_a_session_that_nobody_opened_is_refused(saddle: httpx.Client) -> None:
    body = {"session_id": fresh("session"), "state": "done"}
    assert_problem(saddle.post("/api/saddle/results", json=body), 404, "unknown_session")


# Saying one is alive


def test_a_heartbeat_shows_the_saddle_in_the_fleet_and_writes_nothing(
    saddle: httpx.Client, reader: httpx.Client
) -> None:
    before = seen(reader, "/api/events", limit=5000)["cursor"]
    assert saddle.post("/api/saddle/heartbeat", json={"host": "forge", "version": "3.1"}).status_code == 204
    assert saddle.post("/api/saddle/heartbeat").status_code == 204
    [me] = [one for one in seen(reader, "/api/fleet")["saddles"] if one["name"] == "anvil"]
    assert (me["host"], me["version"]) == ("forge", "3.1")
    assert seen(reader, "/api/events", after=before)["events"] == []
