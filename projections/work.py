"""Goals and tasks together: what the decisive events of one root, or of all roots, have made of them.

The root projection and the catalog hold this same state and fold it with this same function, so they cannot
disagree about a status.
"""

from __future__ import annotations

from typing import Any

import msgspec
from immutables import Map
from msgspec.structs import replace

from ledger.events import kinds
from ledger.events.content import payload_object
from ledger.events.model import NO_EVENTS, OPENING_SEQ, Recorded
from projections import task as tasks
from projections.payloads import identifier, text
from projections.session import Session, time_of
from projections.task import End, Task

CREATED, RUNNING = "created", "running"

GOAL_STREAM, TASK_STREAM = "@goal/", "@task/"
_GOAL_ROOT = "goal/"


class Goal(msgspec.Struct, frozen=True, gc=False):
    """`runs` counts the attempts of its goal_run task, `tasks` all its tasks. `dropped` is what ended it before any
    run. `last_seq` is where its own stream stands. Times in ns."""

    id: str
    created_at: int
    created_position: int
    project_id: str | None = None
    title: str = ""
    brief: str = ""
    branch_name: str = ""
    updated_at: int = 0
    last_seq: int = NO_EVENTS
    run_task_id: str | None = None
    runs: int = 0
    tasks: int = 0
    dropped: End | None = None


class Work(msgspec.Struct, frozen=True):
    goals: Map[str, Goal] = Map()
    tasks: Map[str, Task] = Map()
    session_tasks: Map[str, str] = Map()  # session_id → task_id

    def run_of(self, goal: Goal) -> Task | None:
        return None if goal.run_task_id is None else self.tasks.get(goal.run_task_id)

    def end_of(self, goal: Goal) -> End | None:
        """What ended the goal; None while it is open."""
        run = self.run_of(goal)
        return goal.dropped if run is None else run.attempt.end

    def status_of(self, goal: Goal) -> str:
        """`created`, `running`, `waiting`, `suspended`, `done`, `failed` or `cancelled`."""
        end = self.end_of(goal)
        if end is not None:
            return end.state
        if goal.run_task_id is None:
            return CREATED
        run = self.run_of(goal)
        if run is not None and run.status in (kinds.WAITING, kinds.SUSPENDED):
            return run.status
        return RUNNING

    def session(self, session_id: str) -> Session | None:
        task_id = self.session_tasks.get(session_id)
        return None if task_id is None else self.tasks[task_id].sessions[session_id]


def evolve(work: Work, event: Recorded) -> Work:
    """The work after an event; the same object if it changed nothing."""
    stream = event.session_id
    if not kinds.is_own_stream(stream):
        return _of_session(work, event) if kinds.is_decisive(stream, event.kind) else work
    if stream.startswith(TASK_STREAM):
        return _of_task(work, event, stream.removeprefix(TASK_STREAM))
    if stream.startswith(GOAL_STREAM):
        return _of_goal(work, event, stream.removeprefix(GOAL_STREAM))
    return work


def _of_session(work: Work, event: Recorded) -> Work:
    if event.task_id is None:
        return work
    if event.kind == kinds.SESSION_OPENED:
        if event.seq != OPENING_SEQ or event.session_id in work.session_tasks:
            return work
        work = replace(work, session_tasks=work.session_tasks.set(event.session_id, event.task_id))
    elif event.session_id not in work.session_tasks:
        return work
    return _of_task(work, event, event.task_id)


def _of_task(work: Work, event: Recorded, task_id: str) -> Work:
    before = work.tasks.get(task_id)
    task = tasks.new_task(task_id, event, goal_id_of(event)) if before is None else before
    return _with_task(work, before, tasks.evolve(task, event), event)


def _of_goal(work: Work, event: Recorded, goal_id: str) -> Work:
    goal = work.goals.get(goal_id) or Goal(goal_id, event.recorded_at, event.position)
    goal = replace(goal, updated_at=event.recorded_at, last_seq=event.seq)
    work = _with_goal(work, goal)
    payload = payload_object(event.payload)
    match event.kind:
        case kinds.GOAL_CREATED:
            return _with_goal(work, _created(goal, payload))
        case kinds.GOAL_STARTED if goal.run_task_id is None and goal.dropped is None:
            return _with_goal(work, _running(goal, identifier(payload, "run_task_id")))
        case kinds.GOAL_CANCELLED if work.end_of(goal) is None:
            return _cancelled(work, goal, event, text(payload, "reason"))
        case kinds.GOAL_REOPENED if work.end_of(goal) is not None:
            return _reopened(work, goal, event, identifier(payload, "run_task_id"))
    return work


def _created(goal: Goal, payload: dict[str, Any]) -> Goal:
    return replace(
        goal,
        project_id=identifier(payload, "project_id"),
        title=text(payload, "title"),
        brief=text(payload, "brief"),
        branch_name=text(payload, "branch_name"),
    )


def _running(goal: Goal, run_task_id: str | None) -> Goal:
    if run_task_id is None or run_task_id == goal.run_task_id:
        return goal
    return replace(goal, run_task_id=run_task_id, runs=goal.runs + 1, dropped=None)


def _cancelled(work: Work, goal: Goal, event: Recorded, reason: str) -> Work:
    run = work.run_of(goal)
    if run is not None:
        return _with_task(work, run, tasks.cancel(run, event, reason), event)
    end = End(kinds.CANCELLED, reason, time_of(event), event.recorded_at, event.position, (event.session_id,))
    return _with_goal(work, replace(goal, dropped=end))


def _reopened(work: Work, goal: Goal, event: Recorded, run_task_id: str | None) -> Work:
    run = work.run_of(goal)
    if run is None or run_task_id not in (None, run.id):
        return _with_goal(work, _running(replace(goal, dropped=None), run_task_id))
    return _with_task(work, run, tasks.requeue(run, event), event)


def _with_goal(work: Work, goal: Goal) -> Work:
    return replace(work, goals=work.goals.set(goal.id, goal))


def _with_task(work: Work, before: Task | None, task: Task, event: Recorded) -> Work:
    if task is before:
        return work
    work = replace(work, tasks=work.tasks.set(task.id, task))
    goal = work.goals.get(task.goal_id) if task.goal_id is not None else None
    if goal is None:
        return work
    again = before is not None and len(task.attempts) > len(before.attempts) and task.id == goal.run_task_id
    goal = replace(goal, tasks=goal.tasks + (before is None), runs=goal.runs + again, updated_at=event.recorded_at)
    return _with_goal(work, goal)


def goal_id_of(event: Recorded) -> str | None:
    """The goal under whose root the event lies; None under another root."""
    return event.root.removeprefix(_GOAL_ROOT) if event.root.startswith(_GOAL_ROOT) else None
