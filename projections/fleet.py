"""The view of everything at once: who is there, what needs a person, what failed, fell silent, runs and ended."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec

from ledger.events import kinds
from ledger.events.times import format_instant
from projections import daemons
from projections.catalog import Catalog, goal_item, task_item
from projections.session import Session
from projections.task import LIVE_STATES, ORDINARY, Task
from projections.work import RUNNING, Goal

FAILED_SHOWN = 100
ENDED_SHOWN = 50

_GOAL_LIVE_STATES = (RUNNING, kinds.WAITING, kinds.SUSPENDED)


class Heartbeat(msgspec.Struct, frozen=True):
    """The last that was heard of a saddle; `at` in ns."""

    at: int
    host: str | None = None
    version: str | None = None


def working_sessions(catalog: Catalog) -> list[str]:
    """The sessions whose pulse `fleet_view` asks for: those that work on an attempt that is open."""
    return [session.session_id for task in _live_tasks(catalog) for session in _open_sessions(task)]


def fleet_view(
    catalog: Catalog, pulses: Mapping[str, int], heartbeats: Mapping[str, Heartbeat], *, now: int, silent_after: int
) -> dict[str, Any]:
    """`pulses` are the times of the last events by session, `heartbeats` those of saddles by name; `now` and
    `silent_after` in ns. A working session without an event for longer than `silent_after` is silent."""
    live = list(_live_tasks(catalog))
    return {
        "saddles": _saddles(live, pulses, heartbeats, now - silent_after),
        "needs_you": _needs_you(live),
        "failed": [_failed_item(task) for task in islice(_failed(catalog), FAILED_SHOWN)],
        "silent": _silent(live, pulses, now - silent_after),
        "running": _running(catalog, live),
        "ended": list(islice(_ended(catalog), ENDED_SHOWN)),
        "counts": {
            "goals": catalog.goals.statuses(),
            "tasks": catalog.tasks.statuses(),
            "sessions": {state: count for state, count in sorted(catalog.session_states.items()) if count},
        },
        "at": format_instant(now),
    }


def _live_tasks(catalog: Catalog) -> Iterator[Task]:
    for state in LIVE_STATES:
        for _, _, task_id in catalog.tasks.in_status(state):
            yield catalog.work.tasks[task_id]


def _open_sessions(task: Task) -> list[Session]:
    return [session for session in task.sessions_of(task.attempt.number) if not session.ended]


def _saddles(
    live: list[Task], pulses: Mapping[str, int], heartbeats: Mapping[str, Heartbeat], last_fresh: int
) -> list[dict[str, Any]]:
    contacts = {name: heartbeat.at for name, heartbeat in heartbeats.items()}
    opened: Counter[str] = Counter()
    working: Counter[str] = Counter()
    for session in (session for task in live for session in _open_sessions(task)):
        opened[session.saddle] += 1
        pulse = _pulse(session, pulses)
        working[session.saddle] += _is_at_work(session, pulse >= last_fresh)
        contacts[session.saddle] = max(contacts.get(session.saddle, pulse), pulse)
    return [
        {
            "name": name,
            "host": heartbeats[name].host if name in heartbeats else None,
            "version": heartbeats[name].version if name in heartbeats else None,
            "last_contact": format_instant(contacts[name]),
            "working": working[name],
            "sessions": opened[name],
        }
        for name in sorted(contacts)
    ]


def _is_at_work(session: Session, is_fresh: bool) -> bool:
    """Whether an agent is at work in it. The agents of a loop have one session, also while the loop rests."""
    if session.state != kinds.WORKING or session.agent in daemons.NO_AGENTS:
        return False
    return is_fresh or session.agent not in daemons.RESTING


def _needs_you(live: list[Task]) -> list[dict[str, Any]]:
    """What waits for a person, the longest first."""
    asking = [(task, session) for task in live if task.status == kinds.WAITING and (session := task.current_session)]
    return [
        {
            **_named(task),
            "question": session.state_text,
            "since": format_instant(session.state_at),
            "saddle": session.saddle,
        }
        for task, session in sorted(asking, key=lambda pair: pair[1].state_at)
    ]


def _silent(live: list[Task], pulses: Mapping[str, int], last_fresh: int) -> list[dict[str, Any]]:
    """What has said nothing for long, the longest first; not what rests between its ticks."""
    working = [task.current_session for task in live if task.status == kinds.WORKING]
    found = [
        (pulse, session)
        for session in working
        if session is not None
        and session.agent not in daemons.RESTING
        and (pulse := _pulse(session, pulses)) < last_fresh
    ]
    tasks = {task.id: task for task in live}
    return [
        {
            **_named(tasks[session.task_id]),
            "session_id": session.session_id,
            "since": format_instant(pulse),
            "saddle": session.saddle,
        }
        for pulse, session in sorted(found, key=lambda pair: pair[0])
    ]


def _running(catalog: Catalog, live: list[Task]) -> list[dict[str, Any]]:
    """The goals and the ordinary tasks that are at work, the newest first."""
    goals = [
        catalog.work.goals[goal_id] for state in _GOAL_LIVE_STATES for _, _, goal_id in catalog.goals.in_status(state)
    ]
    found = [(_running_since(catalog, goal), {"kind": "goal", **goal_item(catalog, goal)}) for goal in goals]
    found += [(_attempt_since(task), task_item(task)) for task in live if task.kind == ORDINARY]
    found.sort(key=lambda pair: -pair[0])
    return [{**item, "since": format_instant(since)} for since, item in found]


def _running_since(catalog: Catalog, goal: Goal) -> int:
    run = catalog.work.run_of(goal)
    return goal.updated_at if run is None else _attempt_since(run)


def _attempt_since(task: Task) -> int:
    attempt = task.attempt
    return attempt.queued_at if attempt.started_at is None else attempt.started_at


def _failed(catalog: Catalog) -> Iterator[Task]:
    return (catalog.work.tasks[task_id] for _, _, task_id in catalog.ends("task", kinds.FAILED).falling())


def _failed_item(task: Task) -> dict[str, Any]:
    end = task.attempt.end
    if end is None:
        raise ValueError(f"task {task.id} stands among the failed and has not ended")
    return {
        **_named(task),
        "summary": end.summary or None,
        "at": format_instant(end.at),
        "attempt": task.attempt.number,
        "copies": len(end.said_by),
    }


def _ended(catalog: Catalog) -> Iterator[dict[str, Any]]:
    """The goals and the ordinary tasks that ended, the newest first."""
    for ended_at, _, sort, id_ in heapq.merge(_ends(catalog, "goal"), _ends(catalog, "task"), reverse=True):
        if sort == "goal":
            goal = catalog.work.goals[id_]
            item, worked = {"kind": "goal", **goal_item(catalog, goal)}, catalog.work.run_of(goal)
        elif catalog.work.tasks[id_].kind == ORDINARY:
            item, worked = task_item(catalog.work.tasks[id_]), catalog.work.tasks[id_]
        else:  # a goal_run task: its goal is told
            continue
        started_at = None if worked is None else worked.attempt.started_at
        yield {
            **item,
            "started_at": None if started_at is None else format_instant(started_at),
            "ended_at": format_instant(ended_at),
        }


def _ends(catalog: Catalog, sort: str) -> Iterator[tuple[int, int, str, str]]:
    by_state = [catalog.ends(sort, state).falling() for state in sorted(kinds.TERMINAL_STATES)]
    for ended_at, position, id_ in heapq.merge(*by_state, reverse=True):
        yield ended_at, position, sort, id_


def _named(task: Task) -> dict[str, Any]:
    return {"task_id": task.id, "goal_id": task.goal_id, "title": task.title}


def _pulse(session: Session, pulses: Mapping[str, int]) -> int:
    return pulses.get(session.session_id, session.opened_at)
