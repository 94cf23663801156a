"""The views of one root: a goal, one of its tasks, one of their sessions. Plain dicts, ready for JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

import msgspec

from ledger.events.times import format_instant
from projections import narrative
from projections.actions import actions_of, goal_actions, links
from projections.activity import Current
from projections.doing import doing_item
from projections.narrative import ROWS_SHOWN, row_item
from projections.root import ROOT, Root
from projections.session import Session, StreamFacts, session_item, stream_item
from projections.task import Task, attempts_of, blocks_of
from projections.usage import usage_item

__all__ = ["ROOT", "ROWS_SHOWN", "Integrity", "Root", "goal_view", "session_view", "task_view"]

AGENTS_SHOWN = 10

_NS_PER_MS = 10**6


class Integrity(msgspec.Struct, frozen=True):
    """How the events of a root came in, as the store counted; `missing` counts the seqs that have not arrived."""

    deliveries: int = 0
    duplicates: int = 0
    conflicts: int = 0
    missing: int = 0


def goal_view(
    root: Root,
    *,
    integrity: Integrity,
    cursor: str,
    limit: int = ROWS_SHOWN,
    before: int | None = None,
) -> dict[str, Any] | None:
    """The goal of a root with its newest `limit` rows, or those before the row at `before` (the `older` of another
    answer). None if the root has no goal."""
    goal = root.goal
    if goal is None:
        return None
    status, end, run = root.work.status_of(goal), root.work.end_of(goal), root.work.run_of(goal)
    tasks = sorted(root.work.tasks.values(), key=lambda task: task.created_position)
    return {
        "id": goal.id,
        "project_id": goal.project_id,
        "title": goal.title,
        "brief": goal.brief,
        "branch_name": goal.branch_name,
        "status": status,
        "attempt": goal.runs if run is None else run.attempt.number,
        "summary": end.summary or None if end is not None else None,
        "created_at": format_instant(goal.created_at),
        "ended_at": None if end is None else format_instant(end.at),
        **_current(root.activity.current),
        "run_task_id": goal.run_task_id,
        "tasks": [_task_of_goal(root, task) for task in tasks],
        "agents": _agents(tasks),
        **_rows(root, None, limit, before),
        "usage": usage_item(root.usage.whole),
        "integrity": _integrity(root, integrity),
        "blocks": [{"task_id": task.id, **block} for task in tasks for block in blocks_of(task)],
        "actions": links(f"/api/goals/{_path(goal.id)}", goal_actions(status)),
        "cursor": cursor,
        "digest": narrative.digest(root.narrative),
    }


def task_view(
    root: Root,
    task_id: str,
    *,
    integrity: Integrity,
    cursor: str,
    limit: int = ROWS_SHOWN,
    before: int | None = None,
) -> dict[str, Any] | None:
    """A task with its own rows, paged as in `goal_view`. None if the root has no such task."""
    task = root.work.tasks.get(task_id)
    if task is None:
        return None
    status = task.status
    return {
        "id": task.id,
        "kind": task.kind,
        "title": task.title,
        "brief": task.brief,
        "project_id": task.project_id,
        "goal_id": task.goal_id,
        "status": status,
        "attempt": task.attempt.number,
        "summary": task.summary,
        "loops": task.loops,
        "created_at": format_instant(task.created_at),
        "attempts": attempts_of(task),
        "sessions": [_session_of_task(root, session) for session in task.sessions_of()],
        **_current(root.activity.tasks.get(task_id)),
        **_rows(root, task_id, limit, before),
        "usage": usage_item(root.usage.tasks.get(task_id)),
        "integrity": _integrity(root, integrity),
        "blocks": blocks_of(task),
        "actions": links(f"/api/tasks/{_path(task.id)}", actions_of(task)),
        "cursor": cursor,
        "digest": narrative.digest(root.narrative, task_id),
    }


def session_view(root: Root, session_id: str, *, facts: StreamFacts, cursor: str) -> dict[str, Any] | None:
    """A session, with what the store knows of its stream. None if the root has no such session."""
    session = root.work.session(session_id)
    if session is None:
        return None
    children = [
        child
        for task in root.work.tasks.values()
        for child in task.sessions.values()
        if child.parent_session_id == session_id
    ]
    return {
        "session_id": session.session_id,
        "task_id": session.task_id,
        "goal_id": root.work.tasks[session.task_id].goal_id,
        **session_item(session),
        "cwd": session.cwd,
        **doing_item(root.doing.get(session_id)),
        "children": [child.session_id for child in sorted(children, key=lambda one: one.opened_position)],
        "usage": usage_item(root.usage.sessions.get(session_id)),
        **stream_item(facts),
        "cursor": cursor,
    }


def _task_of_goal(root: Root, task: Task) -> dict[str, Any]:
    return {
        "id": task.id,
        "kind": task.kind,
        "title": task.title,
        "status": task.status,
        "attempt": task.attempt.number,
        "summary": task.summary,
        "loops": task.loops,
        "usage": usage_item(root.usage.tasks.get(task.id)),
    }


def _agents(tasks: Iterable[Task]) -> list[dict[str, Any]]:
    """Which agents worked on which hosts, in how many sessions; the AGENTS_SHOWN busiest."""
    sessions = Counter((one.agent, one.host or one.saddle) for task in tasks for one in task.sessions.values())
    return [
        {"agent": agent, "host": host, "sessions": count}
        for (agent, host), count in sessions.most_common(AGENTS_SHOWN)
    ]


def _session_of_task(root: Root, session: Session) -> dict[str, Any]:
    return {
        **session_item(session),
        **doing_item(root.doing.get(session.session_id)),
        "usage": usage_item(root.usage.sessions.get(session.session_id)),
    }


def _rows(root: Root, task_id: str | None, limit: int, before: int | None) -> dict[str, Any]:
    found, older = narrative.rows(root.narrative, limit=limit, before=before, task_id=task_id)
    return {"events": [row_item(row) for row in found], "older": older}


def _current(current: Current | None) -> dict[str, Any]:
    return {
        "current_command": None if current is None else current.line,
        "current_since": None if current is None else format_instant(current.since),
    }


def _integrity(root: Root, integrity: Integrity) -> dict[str, Any]:
    """`skew` in seconds: how far a claimed time lay in the future of its recording, at most."""
    return {**msgspec.structs.asdict(integrity), "skew": round(root.skew_ns / _NS_PER_MS) / 1000}


def _path(name: str) -> str:
    return quote(name, safe="")
