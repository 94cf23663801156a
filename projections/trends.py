"""The fold over the whole log that says how the fleet fares from day to day: sessions, ends, hours, tokens and cost.

**Days** are of UTC, by the time that a sender claims (unless that lies more than a day ahead of its recording).

**Once.** An attempt counts by the first terminal result of one of its sessions, as its task's status does. Usage
counts once per message, as `projections.usage` has it.

**Bounded.** Kept are DAYS_MAX days, CELLS_MAX pairs of project and model for each, and of roots, tasks, sessions and
usage reports those that were spoken of last. So a copy of a usage report counts again only where REPORTS_MAX others
came in between, and a task that is queued again after TASKS_MAX others begins as if it were new.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable

import msgspec
from immutables import Map
from msgspec.structs import replace

from ledger.events import kinds
from ledger.events.content import payload_object
from ledger.events.model import OPENING_SEQ, Recorded
from ledger.events.times import format_instant
from projections import usage
from projections.fold import Projection
from projections.payloads import identifier, text_or_none
from projections.recent import Recent
from projections.session import push_of
from projections.usage import Tokens, Totals
from projections.work import TASK_STREAM

DAYS_MAX = 400
CELLS_MAX = 200
ROOTS_MAX = TASKS_MAX = SESSIONS_MAX = 20_000
REPORTS_MAX = 50_000
OTHERS = "(others)"  # the project and the model of what found no cell of its own
STEPS_PER_DOUBLING = 4  # durations are counted in steps of 19 %

_DAY_NS = 86_400 * 10**9
_NO_HOURS = (0,) * 24

Cell = tuple[str, str]  # project_id (empty: none), model (empty: not named)


class Day(msgspec.Struct, frozen=True):
    """`ended` counts attempts by terminal state, `to_done` those that are done by the step of their duration, `hours`
    the events of sessions."""

    sessions: int = 0
    ended: Map[str, int] = Map()
    to_done: Map[int, int] = Map()
    hours: tuple[int, ...] = _NO_HOURS
    spent: Map[Cell, Totals] = Map()


class Session(msgspec.Struct, frozen=True, gc=False):
    """`rank` is the position at which it was opened."""

    attempt: int
    is_child: bool
    rank: int
    model: str | None


class Task(msgspec.Struct, frozen=True, gc=False):
    """The current attempt. `started_at` in ns, when its first session was opened."""

    attempt: int = 1
    ended: bool = False
    started_at: int | None = None


class Report(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A usage report, and where it was counted. There are many of them, so they are kept short."""

    seq: int
    rank: int
    day: str
    cell: Cell
    model: str
    tokens: Tokens
    cost_nano_usd: int | None


class Trends(msgspec.Struct, frozen=True):
    """`days` by date, `projects` by root, `reports` by a digest of what they are of."""

    days: Map[str, Day] = Map()
    projects: Recent[str] = Recent()
    tasks: Recent[Task] = Recent()
    sessions: Recent[Session] = Recent()
    reports: Recent[Report] = Recent()


def evolve(trends: Trends, event: Recorded) -> Trends:
    if kinds.is_own_stream(event.session_id):
        return _decided(trends, event)
    trends = _active(trends, event)
    step = _STEPS.get(event.kind)
    return trends if step is None or event.task_id is None else step(trends, event, event.task_id)


def step_of(duration_ns: int) -> int:
    """The step that a duration falls into: 0 up to a second."""
    return max(0, math.floor(STEPS_PER_DOUBLING * math.log2(max(1.0, duration_ns / 1e9))))


def seconds_of(step: int) -> float:
    """The middle of a step."""
    return float(2 ** ((step + 0.5) / STEPS_PER_DOUBLING))


def quantile_s(to_done: Map[int, int], share: float) -> float | None:
    """The duration, in seconds, within which a share (0 to 1) of them lay; None where there are none."""
    wanted = math.ceil(share * sum(to_done.values()))
    for step, count in sorted(to_done.items()):
        wanted -= count
        if wanted <= 0:
            return seconds_of(step)
    return None


def _decided(trends: Trends, event: Recorded) -> Trends:
    if event.kind in (kinds.GOAL_CREATED, kinds.TASK_CREATED) and trends.projects.get(event.root) is None:
        project_id = identifier(payload_object(event.payload), "project_id")
        if project_id is not None:
            trends = replace(trends, projects=trends.projects.put(event.root, project_id, ROOTS_MAX))
    task_id = event.task_id
    if task_id is None or not event.session_id.startswith(TASK_STREAM):
        return trends
    task = trends.tasks.get(task_id) or Task()
    match event.kind:
        case kinds.TASK_CREATED:
            return _with_task(trends, task_id, task)
        case kinds.TASK_REQUEUED if task.ended:
            return _with_task(trends, task_id, Task(task.attempt + 1))
        case kinds.TASK_CANCELLED if not task.ended:
            return _ended(trends, task_id, task, kinds.CANCELLED, event)
    return trends


def _active(trends: Trends, event: Recorded) -> Trends:
    instant = format_instant(_time_of(event))
    day, hour = instant[:10], int(instant[11:13])
    before = trends.days.get(day) or Day()
    hours = (*before.hours[:hour], before.hours[hour] + 1, *before.hours[hour + 1 :])
    return _with_day(trends, day, replace(before, hours=hours))


def _opened(trends: Trends, event: Recorded, task_id: str) -> Trends:
    if event.seq != OPENING_SEQ:
        return trends
    payload = payload_object(event.payload)
    is_child = identifier(payload, "parent_session_id") is not None
    task = trends.tasks.get(task_id) or Task()
    session = Session(task.attempt, is_child, event.position, text_or_none(payload, "model"))
    if task.started_at is None:
        task = replace(task, started_at=_time_of(event))
    trends = _with_task(trends, task_id, task)
    trends = replace(trends, sessions=trends.sessions.put(event.session_id, session, SESSIONS_MAX))
    day = _day_of(event)
    before = trends.days.get(day) or Day()
    return _with_day(trends, day, replace(before, sessions=before.sessions + 1))


def _pushed(trends: Trends, event: Recorded, task_id: str) -> Trends:
    push = push_of(event)
    session, task = trends.sessions.get(event.session_id), trends.tasks.get(task_id)
    if push is None or not push.terminal or session is None or task is None:
        return trends
    if task.ended or session.is_child or session.attempt != task.attempt:
        return trends
    return _ended(trends, task_id, task, push.state, event)


def _ended(trends: Trends, task_id: str, task: Task, state: str, event: Recorded) -> Trends:
    trends = _with_task(trends, task_id, replace(task, ended=True))
    day = _day_of(event)
    before = trends.days.get(day) or Day()
    to_done = before.to_done
    if state == kinds.DONE and task.started_at is not None:
        step = step_of(_time_of(event) - task.started_at)
        to_done = to_done.set(step, to_done.get(step, 0) + 1)
    ended = before.ended.set(state, before.ended.get(state, 0) + 1)
    return _with_day(trends, day, replace(before, ended=ended, to_done=to_done))


def _used(trends: Trends, event: Recorded, task_id: str) -> Trends:
    payload = payload_object(event.payload)
    session = trends.sessions.get(event.session_id)
    rank = event.position if session is None else session.rank
    model = usage.model_of(payload, None if session is None else session.model)
    key = _digest(f"{event.root} {usage.key_of(payload, event)}")
    before = trends.reports.get(key)
    if before is not None:
        if (before.seq, -before.rank) >= (event.seq, -rank):
            return replace(trends, reports=trends.reports.put(key, before, REPORTS_MAX))
        trends = _spent(trends, before, -1)
    day = _day_of(event)
    cell = _cell(trends.days.get(day) or Day(), (trends.projects.get(event.root) or "", model))
    report = Report(event.seq, rank, day, cell, model, *usage.reported(payload))
    trends = _spent(trends, report, 1)
    return replace(trends, reports=trends.reports.put(key, report, REPORTS_MAX))


def _cell(day: Day, wanted: Cell) -> Cell:
    return wanted if wanted in day.spent or len(day.spent) < CELLS_MAX else (OTHERS, OTHERS)


def _spent(trends: Trends, report: Report, sign: int) -> Trends:
    day = trends.days.get(report.day)
    if day is None:
        if sign < 0:  # the day has been dropped, and what was counted with it
            return trends
        day = Day()
    counted = usage.totals(report.model, report.tokens, report.cost_nano_usd)
    sum_ = day.spent.get(report.cell, Totals()).plus(counted, sign)
    empty = sum_ == Totals()
    spent = day.spent.delete(report.cell) if empty and sign < 0 else day.spent.set(report.cell, sum_)
    return _with_day(trends, report.day, replace(day, spent=spent))


def _with_task(trends: Trends, task_id: str, task: Task) -> Trends:
    return replace(trends, tasks=trends.tasks.put(task_id, task, TASKS_MAX))


def _with_day(trends: Trends, name: str, day: Day) -> Trends:
    days = trends.days.set(name, day)
    if len(days) > DAYS_MAX:
        days = days.delete(min(days))
    return replace(trends, days=days)


def _day_of(event: Recorded) -> str:
    return format_instant(_time_of(event))[:10]


def _time_of(event: Recorded) -> int:
    """When it happened, in ns: what the sender claims, unless its clock is wrong for certain."""
    if event.at is None or event.at > event.recorded_at + _DAY_NS:
        return event.recorded_at
    return event.at


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]


_STEPS: dict[str, Callable[[Trends, Recorded, str], Trends]] = {
    kinds.SESSION_OPENED: _opened,
    kinds.RESULT: _pushed,
    kinds.USAGE: _used,
}

TRENDS = Projection(name="trends", version="1", state_type=Trends, initial=Trends(), evolve=evolve)
