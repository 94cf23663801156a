"""Records a goal of a live server as a bundle: its deliveries and decisions in their order, and what they came to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import msgspec

from bundles import plan
from bundles.plan import (
    Bundle,
    CreateGoal,
    CreateProject,
    CreateTask,
    Decide,
    End,
    Ending,
    Event,
    Expected,
    Open,
    Push,
)
from bundles.rig.wire import Answer, Wire, segment
from ledger.errors import Conflict, LedgerError, NotFound
from ledger.events import kinds
from ledger.events.content import payload_object
from ledger.events.model import END_SEQ, OPENING_SEQ, goal_stream, project_stream, task_stream

PUSH_EVENTS_MAX = 200
PAGE_EVENTS = 1000

_DECISIONS = {
    kinds.GOAL_STARTED: "start",
    kinds.GOAL_CANCELLED: "cancel",
    kinds.GOAL_REOPENED: "reopen",
    kinds.TASK_REQUEUED: "requeue",
    kinds.TASK_CANCELLED: "cancel",
    kinds.TASK_BLOCKED: "block",
    kinds.TASK_UNBLOCKED: "unblock",
}
_OPENING_FIELDS = ("resumed_from", "parent_session_id", "same_run_as", "agent", "model", "cwd", "host", "contiguous")


class _Logged(msgspec.Struct, frozen=True):
    """An event as the feed gives it."""

    position: int
    session_id: str
    seq: int
    kind: str
    actor: str
    task_id: str | None
    payload: msgspec.Raw
    at: str | None = None

    @property
    def fields(self) -> dict[str, Any]:
        return payload_object(bytes(self.payload))


class _FeedPage(msgspec.Struct, frozen=True):
    events: list[_Logged]
    cursor: str


def record(wire: Wire, goal_id: str) -> Bundle:
    """Reads a goal and all that led to it. Raises NotFound where there is no such goal, and Conflict where it moved
    meanwhile."""
    goal = _read(wire, goal_id)
    scope = _Scope(goal)
    steps = tuple(_steps(_causes(event for event in _feed(wire) if scope.holds(event))))
    if _read(wire, goal_id)["digest"] != goal["digest"]:
        raise Conflict(f"goal {goal_id} moved while it was recorded", hint="Record it again when it rests.")
    tasks = {task["id"]: Ending(task["status"], task["attempt"], task["summary"]) for task in goal["tasks"]}
    return Bundle(
        plan.VERSION,
        goal_id,
        goal["run_task_id"],
        Expected(goal["digest"], goal["status"], tasks),
        steps,
    )


class _Scope:
    """Which events belong to a goal: its own stream, its project's, and those of its tasks."""

    def __init__(self, goal: dict[str, Any]) -> None:
        self._streams = {goal_stream(goal["id"])}
        if goal["project_id"] is not None:
            self._streams.add(project_stream(goal["project_id"]))
        self._tasks = {task["id"] for task in goal["tasks"]}

    def holds(self, event: _Logged) -> bool:
        return event.session_id in self._streams or event.task_id in self._tasks


def _read(wire: Wire, goal_id: str) -> dict[str, Any]:
    answer = wire.get(f"/api/goals/{segment(goal_id)}")
    if answer.status == 404:
        raise NotFound(f"there is no goal {goal_id!r}", hint="`ledgerd goals` lists them.")
    goal: dict[str, Any] = _expect_200(answer).json
    return goal


def _feed(wire: Wire) -> Iterator[_Logged]:
    cursor = ""
    while True:
        after = f"&after={quote(cursor)}" if cursor else ""
        answer = _expect_200(wire.get(f"/api/events?limit={PAGE_EVENTS}{after}"))
        page = msgspec.json.decode(answer.content, type=_FeedPage)
        if not page.events:
            return
        yield from page.events
        cursor = page.cursor


def _expect_200(answer: Answer) -> Answer:
    if answer.status != 200:
        raise LedgerError(f"the server answered {answer}", hint="Check LEDGERD_URL and LEDGERD_TOKEN.")
    return answer


def _causes(events: Iterator[_Logged]) -> Iterator[_Logged]:
    """Leaves out what a goal's decision brought about by itself, which stands right behind it."""
    cause: _Logged | None = None
    behind = 0
    for event in events:
        if cause is not None and event.position == behind and _follows(event, cause):
            behind += 1
            continue
        cause, behind = event, event.position + 1
        yield event


def _follows(event: _Logged, cause: _Logged) -> bool:
    """The cancel of a goal cancels its open tasks; its reopening requeues its run task."""
    if cause.kind == kinds.GOAL_CANCELLED:
        return event.kind == kinds.TASK_CANCELLED
    requeued = task_stream(str(cause.fields.get("run_task_id")))
    return cause.kind == kinds.GOAL_REOPENED and event.kind == kinds.TASK_REQUEUED and event.session_id == requeued


def _steps(events: Iterator[_Logged]) -> Iterator[plan.Step]:
    """Events that follow each other in one session become one push."""
    pending: Push | None = None
    saddles: dict[str, str] = {}
    for event in events:
        if event.seq == OPENING_SEQ:
            saddles[event.session_id] = event.actor
        step = _step(event, saddles)
        if (
            pending is not None
            and isinstance(step, Push)
            and step.session_id == pending.session_id
            and len(pending.events) < PUSH_EVENTS_MAX
        ):
            pending = msgspec.structs.replace(pending, events=pending.events + step.events)
            continue
        if pending is not None:
            yield pending
        pending = step if isinstance(step, Push) else None
        if step is not None and pending is None:
            yield step
    if pending is not None:
        yield pending


def _step(event: _Logged, saddles: dict[str, str]) -> plan.Step | None:
    """None for what follows from another step by itself: a claim, the run task of a start."""
    if kinds.is_own_stream(event.session_id):
        return _own_step(event)
    saddle = saddles[event.session_id]
    told = event.fields
    if event.seq == OPENING_SEQ:
        fields = {name: told[name] for name in _OPENING_FIELDS if told.get(name) is not None}
        return Open(saddle, event.session_id, told["task_id"], fields)
    if event.seq == END_SEQ:
        return End(saddle, event.session_id, told["state"], told.get("summary"), event.at)
    return Push(saddle, event.session_id, (Event(event.seq, event.kind, event.actor, event.payload, event.at),))


def _own_step(event: _Logged) -> plan.Step | None:
    told, actor = event.fields, event.actor
    match event.kind:
        case kinds.PROJECT_CREATED:
            return CreateProject(actor, told["id"], told["title"])
        case kinds.GOAL_CREATED:
            return CreateGoal(
                actor, told["id"], told["title"], told["project_id"], told["brief"], told["branch_name"]
            )
        case kinds.TASK_CREATED if told["kind"] == "task":
            return CreateTask(actor, told["id"], told["title"], told["project_id"], told["goal_id"], told["brief"])
        case kind if kind in _DECISIONS:
            what, id_ = event.session_id.removeprefix("@").split("/", 1)
            reason = told.get("reason") or ""
            return Decide(actor, "goals" if what == "goal" else "tasks", id_, _DECISIONS[kind], reason)
    return None
