"""Writes to the ledger's own streams, as deciders return them."""

from __future__ import annotations

from typing import Any

import msgspec

from ledger.events import kinds
from ledger.events.decode import new_event
from ledger.events.model import NO_EVENTS, goal_root, goal_stream, project_stream, task_root, task_stream
from ledger.store.base import Opening, Write
from projections.work import Work


class Fact(msgspec.Struct, frozen=True):
    """One event to come on one of the ledger's own streams: what happened, not yet where it stands."""

    stream: str
    kind: str
    payload: dict[str, Any]


def write_of(fact: Fact, last_seq: int, actor: str) -> Write:
    """The fact as a conditional write behind `last_seq` (NO_EVENTS: it founds its stream)."""
    founds = last_seq == NO_EVENTS
    event = new_event(0 if founds else last_seq + 1, fact.kind, actor, fact.payload)
    return Write(fact.stream, [event], opening=_opening(fact, actor) if founds else None, expected_seq=last_seq)


def _opening(fact: Fact, actor: str) -> Opening:
    payload = fact.payload
    match fact.kind:
        case kinds.PROJECT_CREATED:
            return Opening(f"project/{payload['id']}", None, actor)
        case kinds.GOAL_CREATED:
            return Opening(goal_root(payload["id"]), None, actor)
        case kinds.TASK_CREATED:
            return Opening(root_of_task(payload["id"], payload["goal_id"]), payload["id"], actor)
    raise ValueError(f"{fact.kind} founds no stream")


def root_of_task(task_id: str, goal_id: str | None) -> str:
    return task_root(task_id) if goal_id is None else goal_root(goal_id)


def project_created(project_id: str, title: str) -> Fact:
    return Fact(project_stream(project_id), kinds.PROJECT_CREATED, {"id": project_id, "title": title})


def goal_created(goal_id: str, project_id: str | None, title: str, brief: str, branch_name: str) -> Fact:
    payload = {
        "id": goal_id,
        "project_id": project_id,
        "title": title,
        "brief": brief,
        "branch_name": branch_name,
    }
    return Fact(goal_stream(goal_id), kinds.GOAL_CREATED, payload)


def task_created(
    task_id: str, kind: str, title: str, *, brief: str = "", project_id: str | None = None, goal_id: str | None = None
) -> Fact:
    payload = {
        "id": task_id,
        "kind": kind,
        "title": title,
        "brief": brief,
        "project_id": project_id,
        "goal_id": goal_id,
    }
    return Fact(task_stream(task_id), kinds.TASK_CREATED, payload)


def of_goal(goal_id: str, kind: str, **payload: Any) -> Fact:
    return Fact(goal_stream(goal_id), kind, payload)


def of_task(task_id: str, kind: str, **payload: Any) -> Fact:
    return Fact(task_stream(task_id), kind, payload)


def last_seq(work: Work, stream: str) -> int:
    """Where the fold has seen one of the ledger's own streams stand; NO_EVENTS if it is not there."""
    kind, _, id = stream[1:].partition("/")
    found = work.goals.get(id) if kind == "goal" else work.tasks.get(id)
    return NO_EVENTS if found is None else found.last_seq
