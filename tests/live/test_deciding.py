"""What owners create and decide, and how saddles are given work."""

from __future__ import annotations

import contextlib
import json
import socket
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.live.serving import (
    Server,
    acted,
    assert_problem,
    created,
    event,
    fresh,
    opened,
    push,
    result,
    seen,
    token_of,
    wait_for_listeners,
)

AT_ONCE = 40


@pytest.fixture(autouse=True)
def nothing_queued(owner: httpx.Client) -> None:
    """Each test begins with an empty queue, so that what an ask gives is the test's own."""
    for task in seen(owner, "/api/tasks", status="queued", limit=1000)["items"]:
        assert owner.post(f"/api/tasks/{task['id']}/cancel").status_code == 200


# Creating


@pytest.mark.parametrize("what", ["projects", "goals", "tasks"])
def test_creating_again_with_the_same_id_answers_200_with_the_same(owner: httpx.Client, what: str) -> None:
    body = {"id": fresh("named"), "title": "Build a shed"}
    first, again = (owner.post(f"/api/{what}", json=body) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == first.json()
    other = owner.post(f"/api/{what}", json={**body, "title": "Build a boat"})
    assert_problem(other, 409, "id_taken")


@pytest.mark.parametrize("what", ["projects", "goals", "tasks"])
def test_ids_that_the_ledger_gives_are_counters_past_those_that_are_taken(owner: httpx.Client, what: str) -> None:
    first = int(created(owner, what)["id"])
    created(owner, what, id=first + 5)
    assert int(created(owner, what)["id"]) == first + 6


def test_a_goal_is_created_with_what_was_said(owner: httpx.Client) -> None:
    goal = created(owner, "goals", title=" Port it ", project_id=7, brief="All of it", branch_name="port")
    assert (goal["title"], goal["project_id"], goal["brief"], goal["branch_name"]) == (
        "Port it",
        "7",
        "All of it",
        "port",
    )
    assert (goal["status"], goal["run_task_id"], goal["tasks"]) == ("created", None, [])


@pytest.mark.parametrize(
    ("what", "body", "status", "code"),
    [
        ("goals", {}, 422, "invalid_field"),
        ("goals", {"title": "  "}, 422, "invalid_field"),
        ("goals", {"title": "x" * 501}, 422, "invalid_field"),
        ("goals", {"title": 7}, 422, "invalid_field"),
        ("goals", {"title": "x", "id": "a/b"}, 422, "invalid_field"),
        ("goals", {"title": "x", "id": "@1"}, 422, "invalid_field"),
        ("tasks", {"title": "x", "goal_id": "nowhere"}, 404, "unknown_goal"),
        ("projects", {"id": ""}, 422, "invalid_field"),
    ],
)
def test_what_cannot_be_created_is_refused(
    owner: httpx.Client, what: str, body: dict[str, Any], status: int, code: str
) -> None:
    assert_problem(owner.post(f"/api/{what}", json=body), status, code)


def test_many_that_create_at_once_are_each_given_an_id_of_their_own(server: Server) -> None:
    clients = [server.client() for _ in range(AT_ONCE)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(lambda client: client.post("/api/tasks", json={"title": "one of many"}), clients))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == AT_ONCE


def test_many_ad_hoc_tasks_at_once_are_each_given_an_id_of_their_own(server: Server, saddle: httpx.Client) -> None:
    clients = [server.client(token_of(saddle)) for _ in range(AT_ONCE)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        tasks = list(pool.map(lambda client: opened(client)[1], clients))
    assert len(set(tasks)) == AT_ONCE


# Deciding


def test_a_goals_life_follows_the_decisions_that_it_offers(owner: httpx.Client, saddle: httpx.Client) -> None:
    goal = created(owner, "goals")
    assert set(goal["actions"]) == {"start", "cancel"}
    goal = acted(owner, goal, "start")
    assert (goal["status"], set(goal["actions"]), goal["tasks"][0]["kind"]) == ("running", {"cancel"}, "goal_run")
    first = saddle.post("/api/saddle/ask").json()["session_id"]
    result(saddle, first, "suspended", seq=0)
    assert seen(owner, f"/api/goals/{goal['id']}")["status"] == "suspended"
    result(saddle, first, "failed", summary="no way")
    goal = acted(owner, seen(owner, f"/api/goals/{goal['id']}"), "reopen")
    assert (goal["status"], goal["attempt"]) == ("running", 2)
    second = saddle.post("/api/saddle/ask").json()
    assert second["task"]["attempt"] == 2
    result(saddle, first, "failed", summary="a late word of the first attempt", seq=9)
    assert seen(owner, f"/api/goals/{goal['id']}")["status"] == "running"
    assert result(saddle, second["session_id"], "failed", summary="again no way")["goal"]["status"] == "failed"
    rows = seen(owner, f"/api/goals/{goal['id']}")["events"]
    assert [row["text"] for row in rows if row["kind"] == "goal-failed"] == ["no way", "again no way"]


def test_a_goal_that_was_cancelled_before_it_started_can_be_reopened(owner: httpx.Client) -> None:
    goal = acted(owner, created(owner, "goals"), "cancel", reason="not now")
    assert (goal["status"], goal["summary"], set(goal["actions"])) == ("cancelled", "not now", {"reopen"})
    goal = acted(owner, goal, "reopen")
    assert goal["status"] == "running"
    assert [task["status"] for task in goal["tasks"]] == ["queued"]


def test_cancelling_a_goal_cancels_its_open_tasks(owner: httpx.Client, saddle: httpx.Client) -> None:
    goal = acted(owner, created(owner, "goals"), "start")
    created(owner, "tasks", goal_id=goal["id"])
    done, _ = opened(saddle, task={"title": "done before", "goal_id": goal["id"]})
    result(saddle, done, "done")
    goal = acted(owner, seen(owner, f"/api/goals/{goal['id']}"), "cancel", reason="enough")
    assert Counter(task["status"] for task in goal["tasks"]) == {"cancelled": 2, "done": 1}
    assert saddle.post("/api/saddle/ask").status_code == 204


def test_a_failing_ordinary_task_fails_no_goal(owner: httpx.Client, saddle: httpx.Client) -> None:
    goal = acted(owner, created(owner, "goals"), "start")
    session_id, _ = opened(saddle, task={"title": "of the goal", "goal_id": goal["id"]})
    assert result(saddle, session_id, "failed")["goal"] == {"id": goal["id"], "status": "running"}
    kinds = [row["kind"] for row in seen(owner, f"/api/goals/{goal['id']}")["events"]]
    assert (kinds.count("task-failed"), kinds.count("goal-failed")) == (1, 0)


def test_a_tasks_life_follows_the_decisions_that_it_offers(owner: httpx.Client, saddle: httpx.Client) -> None:
    task = created(owner, "tasks")
    assert (task["status"], set(task["actions"])) == ("queued", {"cancel", "block"})
    task = acted(owner, task, "block", reason="wait for the key")
    assert set(task["actions"]) == {"cancel", "unblock"}
    assert [(block["reason"], block["actor"]) for block in task["blocks"]] == [("wait for the key", "owner")]
    assert saddle.post("/api/saddle/ask").status_code == 204
    task = acted(owner, task, "unblock")
    assert task["blocks"] == []
    work = saddle.post("/api/saddle/ask").json()
    assert work["task"]["id"] == task["id"]
    result(saddle, work["session_id"], "failed", summary="first")
    task = acted(owner, seen(owner, f"/api/tasks/{task['id']}"), "requeue")
    assert (task["status"], task["attempt"], task["summary"]) == ("queued", 2, None)
    task = acted(owner, task, "cancel", reason="never mind")
    assert (task["status"], task["summary"], set(task["actions"])) == ("cancelled", "never mind", {"requeue"})
    assert [attempt["status"] for attempt in task["attempts"]] == ["failed", "cancelled"]


@pytest.mark.parametrize("action", ["requeue", "unblock", "start", "fly"])
def test_a_decision_that_is_not_offered_is_refused(owner: httpx.Client, action: str) -> None:
    task = created(owner, "tasks")
    problem = assert_problem(owner.post(f"/api/tasks/{task['id']}/{action}"), 409, "not_offered")
    assert "cancel" in problem["detail"]
    assert seen(owner, f"/api/tasks/{task['id']}")["actions"] == task["actions"]


@pytest.mark.parametrize(
    ("path", "code"), [("/api/goals/none/start", "unknown_goal"), ("/api/tasks/none/cancel", "unknown_task")]
)
def test_nothing_is_decided_about_what_there_is_not(owner: httpx.Client, path: str, code: str) -> None:
    assert_problem(owner.post(path), 404, code)


def test_a_decisions_body_may_be_left_away_but_must_be_json(owner: httpx.Client) -> None:
    task_id = created(owner, "tasks")["id"]
    assert_problem(owner.post(f"/api/tasks/{task_id}/block", content=b"reason=x"), 400, "malformed_body")
    assert_problem(owner.post(f"/api/tasks/{task_id}/block", json={"reason": 7}), 422, "invalid_field")
    assert owner.post(f"/api/tasks/{task_id}/block").status_code == 200


def test_fifty_starts_of_one_goal_make_one_run_task(server: Server, owner: httpx.Client) -> None:
    goal_id = created(owner, "goals")["id"]
    clients = [server.client() for _ in range(50)]
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda client: client.post(f"/api/goals/{goal_id}/start"), clients))
    assert Counter(answer.status_code for answer in answers) == {200: 1, 409: 49}
    assert len(seen(owner, f"/api/goals/{goal_id}")["tasks"]) == 1


# Asking for work


def test_an_ask_gives_the_task_that_has_been_queued_longest_and_opens_its_session(
    owner: httpx.Client, saddle: httpx.Client
) -> None:
    first = created(owner, "tasks", title="First", brief="Look closely", project_id="p")
    second = created(owner, "tasks")
    answer = saddle.post("/api/saddle/ask", json={"agent": "someone", "model": "m", "cwd": "/srv", "host": "forge"})
    assert answer.status_code == 200
    assert set(answer.json()) == {"task", "session_id"}
    assert answer.json()["task"] == {
        "id": first["id"],
        "kind": "task",
        "title": "First",
        "brief": "Look closely",
        "project_id": "p",
        "goal_id": None,
        "branch_name": "",
        "attempt": 1,
    }
    session = seen(owner, f"/api/sessions/{answer.json()['session_id']}")
    assert (session["saddle"], session["agent"], session["model"], session["cwd"], session["host"]) == (
        "anvil",
        "someone",
        "m",
        "/srv",
        "forge",
    )
    assert seen(owner, f"/api/tasks/{first['id']}")["status"] == "working"
    assert saddle.post("/api/saddle/ask").json()["task"]["id"] == second["id"]


def test_an_ask_without_work_answers_204_when_its_wait_is_over(saddle: httpx.Client) -> None:
    answer = saddle.post("/api/saddle/ask", json={"wait_s": 0.3})
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.elapsed.total_seconds() >= 0.3


@pytest.mark.parametrize("wait_s", [-1, 31, 1e300, "5", None])
def test_an_ask_does_not_wait_for_ever(saddle: httpx.Client, wait_s: Any) -> None:
    problem = assert_problem(saddle.post("/api/saddle/ask", json={"wait_s": wait_s}), 422, "invalid_field")
    assert problem["field"] == "wait_s"


def test_an_ask_that_waits_is_woken_by_new_work(server: Server, owner: httpx.Client, saddle: httpx.Client) -> None:
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(server.client(token_of(saddle)).post, "/api/saddle/ask", json={"wait_s": 30})
        wait_for_listeners(owner, 1)
        task_id = created(owner, "tasks")["id"]
        answer = asking.result(20)
    assert answer.json()["task"]["id"] == task_id


def test_of_two_that_ask_one_gets_the_task(
    server: Server, owner: httpx.Client, saddle: httpx.Client, other_saddle: httpx.Client
) -> None:
    clients = [server.client(token_of(client)) for client in (saddle, other_saddle)]
    with ThreadPoolExecutor(2) as pool:
        asking = [pool.submit(client.post, "/api/saddle/ask", json={"wait_s": 3}) for client in clients]
        wait_for_listeners(owner, 2)
        task_id = created(owner, "tasks")["id"]
        answers = [future.result(30) for future in asking]
    assert sorted(answer.status_code for answer in answers) == [200, 204]
    assert len(seen(owner, f"/api/tasks/{task_id}")["sessions"]) == 1


def test_an_ask_repeated_with_its_session_id_is_given_the_same_work(
    owner: httpx.Client, saddle: httpx.Client, other_saddle: httpx.Client
) -> None:
    for _ in range(2):
        created(owner, "tasks")
    body = {"session_id": fresh("session")}
    first, again = (saddle.post("/api/saddle/ask", json=body) for _ in range(2))
    assert first.json() == again.json()
    assert first.json()["session_id"] == body["session_id"]
    assert_problem(other_saddle.post("/api/saddle/ask", json=body), 404, "unknown_session")


def test_the_same_ask_sent_many_times_at_once_claims_one_task(
    server: Server, owner: httpx.Client, saddle: httpx.Client
) -> None:
    for _ in range(3):
        created(owner, "tasks")
    body, clients = {"session_id": fresh("session")}, [server.client(token_of(saddle)) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda client: client.post("/api/saddle/ask", json=body), clients))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["task"]["id"] for answer in answers}) == 1
    assert len(seen(owner, "/api/tasks", status="queued")["items"]) == 2


def test_who_hung_up_while_waiting_is_given_no_work(
    server: Server, owner: httpx.Client, saddle: httpx.Client
) -> None:
    with hanging_ask(server, token_of(saddle)):
        wait_for_listeners(owner, 1)
    task_id = created(owner, "tasks")["id"]
    answer = saddle.post("/api/saddle/ask", json={"wait_s": 1})
    assert answer.status_code == 200
    assert answer.json()["task"]["id"] == task_id


def test_fifty_asks_for_ten_tasks_claim_each_once(server: Server, owner: httpx.Client, saddle: httpx.Client) -> None:
    wanted = {created(owner, "tasks")["id"] for _ in range(10)}
    clients = [server.client(token_of(saddle)) for _ in range(50)]
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda client: client.post("/api/saddle/ask"), clients))
    claimed = [answer.json()["task"]["id"] for answer in answers if answer.status_code == 200]
    assert Counter(answer.status_code for answer in answers) == {200: 10, 204: 40}
    assert Counter(claimed) == dict.fromkeys(wanted, 1)


def test_a_claimed_task_that_is_opened_elsewhere_is_one_task_with_two_sessions(
    owner: httpx.Client, saddle: httpx.Client, other_saddle: httpx.Client
) -> None:
    task_id = created(owner, "tasks")["id"]
    first = saddle.post("/api/saddle/ask").json()["session_id"]
    second, _ = opened(other_saddle, task_id=task_id)
    push(other_saddle, second, [event(0)])
    sessions = seen(owner, f"/api/tasks/{task_id}")["sessions"]
    assert [(one["session_id"], one["saddle"]) for one in sessions] == [(first, "anvil"), (second, "bellows")]


def test_opening_a_session_on_a_queued_task_claims_it(owner: httpx.Client, saddle: httpx.Client) -> None:
    opened(saddle, task_id=created(owner, "tasks")["id"])
    assert saddle.post("/api/saddle/ask").status_code == 204


@contextlib.contextmanager
def hanging_ask(server: Server, token: str) -> Iterator[None]:
    """An ask that waits on a connection of its own, which is closed when the block ends."""
    address, body = urlsplit(server.url), json.dumps({"wait_s": 20}).encode()
    head = f"POST /api/saddle/ask HTTP/1.1\r\nHost: ledger\r\nAuthorization: Bearer {token}\r\n"
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        yield
