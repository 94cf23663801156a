"""Recording a goal from what a server says of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import msgspec
import pytest

from bundles import recording
from bundles.plan import Bundle, CreateGoal, CreateProject, CreateTask, Decide, End, Ending, Open, Push
from bundles.rig.deadline import Deadline
from bundles.rig.wire import Wire
from ledger.errors import Conflict, LedgerError, NotFound
from ledger.events.model import END_SEQ

Json = dict[str, Any]

GOAL = {
    "id": "7",
    "project_id": "p",
    "run_task_id": "12",
    "status": "failed",
    "digest": "d1",
    "tasks": [
        {"id": "12", "kind": "goal_run", "status": "failed", "attempt": 2, "summary": "No room."},
        {"id": "13", "kind": "task", "status": "cancelled", "attempt": 1, "summary": None},
    ],
}


def logged(rows: list[tuple[str, str, str | None, Json]]) -> list[Json]:
    """Events of the ledger's own and openings: (stream, kind, task_id, payload), at rising positions."""
    return [
        {
            "position": number,
            "session_id": stream,
            "seq": -1 if kind == "session.opened" else payload.pop("seq", number),
            "kind": kind,
            "actor": payload.pop("actor", "owner"),
            "task_id": task_id,
            "recorded_at": "2026-02-03T04:05:06Z",
            "at": None,
            "payload": payload,
        }
        for number, (stream, kind, task_id, payload) in enumerate(rows, start=1)
    ]


def history() -> list[Json]:
    created = {"project_id": "p", "brief": ""}
    return logged(
        [
            ("@project/p", "project.created", None, {"id": "p", "title": "Port"}),
            ("@project/q", "project.created", None, {"id": "q", "title": "Another"}),
            ("@goal/7", "goal.created", None, {"id": "7", "title": "G", "branch_name": "b", **created}),
            ("@goal/7", "goal.started", None, {"run_task_id": "12"}),
            (
                "@task/12",
                "task.created",
                "12",
                {"id": "12", "kind": "goal_run", "title": "G", "goal_id": "7", **created},
            ),
            ("@task/13", "task.created", "13", {"id": "13", "kind": "task", "title": "T", "goal_id": "7", **created}),
            ("@task/12", "task.claimed", "12", {"session_id": "s1", "saddle": "mule"}),
            ("s1", "session.opened", "12", {"task_id": "12", "saddle": "mule", "agent": "x", "actor": "mule"}),
            ("s1", "comment", "12", {"seq": 0, "actor": "model", "body": "One."}),
            ("s1", "comment", "12", {"seq": 1, "actor": "model", "body": "Two."}),
            ("elsewhere", "comment", "99", {"seq": 0, "body": "Not of this goal."}),
            ("s1", "result", "12", {"seq": END_SEQ, "actor": "mule", "state": "failed", "summary": "No room."}),
            ("@goal/7", "goal.reopened", None, {"run_task_id": "12"}),
            ("@task/12", "task.requeued", "12", {}),
            ("@task/13", "task.requeued", "13", {}),
            ("@goal/7", "goal.cancelled", None, {"reason": "enough"}),
            ("@task/12", "task.cancelled", "12", {"reason": "enough"}),
            ("@task/13", "task.cancelled", "13", {"reason": "enough"}),
            ("@task/13", "task.requeued", "13", {}),
        ]
    )


@pytest.fixture
def recorded() -> Iterator[Callable[..., Bundle]]:
    """Records goal 7 from a server that says `goals` in turn, and the history in pages of five."""
    clients: list[httpx.Client] = []

    def record(*goals: Json, status: int = 200) -> Bundle:
        told = list(goals)

        def answer(request: httpx.Request) -> httpx.Response:
            if request.url.path == "/api/goals/7":
                return httpx.Response(status, content=msgspec.json.encode(told.pop(0) if told else {}))
            start = int(request.url.params.get("after", "0"))
            page = history()[start : start + 5]
            return httpx.Response(200, json={"events": page, "cursor": str(start + len(page))})

        client = httpx.Client(transport=httpx.MockTransport(answer))
        clients.append(client)
        return recording.record(Wire(client, lambda: "http://ledger", "token", Deadline(10)), "7")

    yield record
    for client in clients:
        client.close()


def test_a_goal_is_recorded_as_the_steps_that_led_to_it(recorded: Callable[..., Bundle]) -> None:
    bundle = recorded(GOAL, GOAL)
    said = bundle.steps[5]
    assert isinstance(said, Push)
    assert [(event.seq, msgspec.json.decode(event.payload)) for event in said.events] == [
        (0, {"body": "One."}),
        (1, {"body": "Two."}),
    ]
    assert [step for step in bundle.steps if step is not said] == [
        CreateProject("owner", "p", "Port"),
        CreateGoal("owner", "7", "G", "p", "", "b"),
        Decide("owner", "goals", "7", "start"),
        CreateTask("owner", "13", "T", "p", "7", ""),
        Open("mule", "s1", "12", {"agent": "x"}),
        End("mule", "s1", "failed", "No room."),
        Decide("owner", "goals", "7", "reopen"),
        Decide("owner", "tasks", "13", "requeue"),
        Decide("owner", "goals", "7", "cancel", "enough"),
        Decide("owner", "tasks", "13", "requeue"),
    ]


def test_what_it_came_to_is_recorded_with_it(recorded: Callable[..., Bundle]) -> None:
    bundle = recorded(GOAL, GOAL)
    assert (bundle.run_task_id, bundle.expected.digest, bundle.expected.status) == ("12", "d1", "failed")
    assert bundle.expected.tasks == {"12": Ending("failed", 2, "No room."), "13": Ending("cancelled", 1, None)}


def test_a_goal_that_moves_meanwhile_is_not_recorded(recorded: Callable[..., Bundle]) -> None:
    with pytest.raises(Conflict, match="moved"):
        recorded(GOAL, {**GOAL, "digest": "d2"})


def test_an_unknown_goal_and_a_wrong_token_are_told_apart(recorded: Callable[..., Bundle]) -> None:
    with pytest.raises(NotFound):
        recorded(status=404)
    with pytest.raises(LedgerError, match="401"):
        recorded(status=401)
