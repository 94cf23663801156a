"""The fold over the decisive events of all roots: which tasks, goals and projects there are, how they stand, what
waits to be claimed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import msgspec
from immutables import Map
from msgspec.structs import replace

from ledger.events import kinds
from ledger.events.content import payload_object
from ledger.events.model import Recorded
from ledger.events.times import format_instant
from projections import daemons, work
from projections.fold import Projection
from projections.ordered import Ordered
from projections.payloads import text
from projections.task import End, Task
from projections.work import Goal, Work

PROJECT_STREAM = "@project/"
PAGE = 100

Key = tuple[int, int, str]  # a time (ns), a position, an id: the order of a list

_DIGITS_MAX = 15  # ids of more digits are names, not counters


class Project(msgspec.Struct, frozen=True):
    id: str
    title: str
    created_at: int
    created_position: int


class Shelf(msgspec.Struct, frozen=True):
    """One sort of thing by creation: all of it, and each status; `high_id` is the highest number used as an id."""

    order: Ordered[Key] = Ordered()
    by_status: Map[str, Ordered[Key]] = Map()
    high_id: int = 0

    def statuses(self) -> dict[str, int]:
        """How many there are in each status; those of none are left out."""
        return {status: len(keys) for status, keys in sorted(self.by_status.items()) if keys}

    def in_status(self, status: str) -> Ordered[Key]:
        return self.by_status.get(status, Ordered())


class Catalog(msgspec.Struct, frozen=True):
    """`queue` are the claimable tasks in the order in which they became queued. `ended` are the goals and tasks that
    stand ended, by kind and terminal state (`("goal", "failed")` as `goal failed`), by the time of their end.
    `loops` are the tasks that a loop works on, or once did. `session_states` counts sessions by the state they said
    last."""

    work: Work = Work()
    projects: Map[str, Project] = Map()
    goals: Shelf = Shelf()
    tasks: Shelf = Shelf()
    project_shelf: Shelf = Shelf()
    queue: Ordered[Key] = Ordered()
    ended: Map[str, Ordered[Key]] = Map()
    loops: Ordered[Key] = Ordered()
    session_states: Map[str, int] = Map()

    @property
    def next_goal_number(self) -> int:
        """A number that is no goal's id yet."""
        return self.goals.high_id + 1

    @property
    def next_task_number(self) -> int:
        """A number that is no task's id yet."""
        return self.tasks.high_id + 1

    @property
    def next_project_number(self) -> int:
        """A number that is no project's id yet."""
        return self.project_shelf.high_id + 1

    def ends(self, sort: str, state: str) -> Ordered[Key]:
        """The goals or tasks (`sort` is "goal" or "task") that stand ended in a terminal state, by the time of it."""
        return self.ended.get(f"{sort} {state}", Ordered())

    def claimable(self) -> Iterator[Task]:
        """The tasks that are queued and not blocked, in the order in which they became queued."""
        return (self.work.tasks[task_id] for _, _, task_id in self.queue)


def evolve(catalog: Catalog, event: Recorded) -> Catalog:
    """The catalog after an event; events that decide nothing may be left away."""
    if event.kind == kinds.PROJECT_CREATED and event.session_id.startswith(PROJECT_STREAM):
        return _with_project(catalog, event)
    before = catalog.work
    after = work.evolve(before, event)
    if after is before:
        return catalog
    catalog = replace(catalog, work=after)
    goal_id = work.goal_id_of(event)
    goal = after.goals.get(goal_id) if goal_id is not None else None
    task_id = goal.run_task_id if event.task_id is None and goal is not None else event.task_id
    if goal is not None:
        catalog = _with_goal(catalog, before, goal)
    if task_id is not None and (task := after.tasks.get(task_id)) is not None:
        catalog = _with_task(catalog, before.tasks.get(task_id), task, event.session_id)
    return catalog


CATALOG = Projection(name="catalog", version="3", state_type=Catalog, initial=Catalog(), evolve=evolve)


def statuses(catalog: Catalog, task_id: str | None) -> tuple[dict[str, str] | None, dict[str, str] | None]:
    """`{id, status}` of a task and of its goal, as a receipt names them; None for what there is not."""
    task = catalog.work.tasks.get(task_id) if task_id is not None else None
    if task is None:
        return None, None
    goal = catalog.work.goals.get(task.goal_id) if task.goal_id is not None else None
    told = {"id": task.id, "status": task.status}
    return told, None if goal is None else {"id": goal.id, "status": catalog.work.status_of(goal)}


def work_order(task: Task, catalog: Catalog) -> dict[str, Any]:
    """A task as a saddle is given it: what to do, and on which branch."""
    goal = catalog.work.goals.get(task.goal_id) if task.goal_id is not None else None
    return {
        "id": task.id,
        "kind": task.kind,
        "title": task.title,
        "brief": task.brief,
        "project_id": task.project_id,
        "goal_id": task.goal_id,
        "branch_name": "" if goal is None else goal.branch_name,
        "attempt": task.attempt.number,
    }


def goals(
    catalog: Catalog,
    *,
    status: str | None = None,
    project_id: str | None = None,
    after: str | None = None,
    limit: int = PAGE,
) -> dict[str, Any]:
    """One page of goals, the newest first: `{items, next}`, `next` being what to give as `after` for the page that
    follows. Raises KeyError if `after` is no goal's id."""
    below = None if after is None else _created_key(catalog.work.goals[after])
    found = _page(catalog.goals, catalog.work.goals, status, project_id, below, limit)
    return _listed(found, limit, lambda goal: goal_item(catalog, goal))


def tasks(
    catalog: Catalog,
    *,
    status: str | None = None,
    project_id: str | None = None,
    after: str | None = None,
    limit: int = PAGE,
) -> dict[str, Any]:
    """One page of tasks, as `goals` does it."""
    below = None if after is None else _created_key(catalog.work.tasks[after])
    found = _page(catalog.tasks, catalog.work.tasks, status, project_id, below, limit)
    return _listed(found, limit, task_item)


def loops(catalog: Catalog, *, after: str | None = None) -> Iterator[Task]:
    """The tasks that a loop works on, or once did, the newest first. Raises KeyError if `after` is no task's id."""
    below = None if after is None else _created_key(catalog.work.tasks[after])
    return (catalog.work.tasks[task_id] for _, _, task_id in catalog.loops.falling(below))


def projects(catalog: Catalog, *, after: str | None = None, limit: int = PAGE) -> dict[str, Any]:
    """One page of projects, as `goals` does it."""
    below = None if after is None else _created_key(catalog.projects[after])
    keys = catalog.project_shelf.order.falling(below)
    found = [catalog.projects[key[2]] for key, _ in zip(keys, range(limit + 1), strict=False)]
    return _listed(found, limit, project_item)


def goal_item(catalog: Catalog, goal: Goal) -> dict[str, Any]:
    end, run = catalog.work.end_of(goal), catalog.work.run_of(goal)
    return {
        "id": goal.id,
        "project_id": goal.project_id,
        "title": goal.title,
        "status": catalog.work.status_of(goal),
        "run_task_id": goal.run_task_id,
        "attempt": goal.runs if run is None else run.attempt.number,
        "tasks": goal.tasks,
        "summary": end.summary or None if end is not None else None,
        "created_at": format_instant(goal.created_at),
        "updated_at": format_instant(goal.updated_at),
    }


def task_item(task: Task) -> dict[str, Any]:
    return {
        "id": task.id,
        "kind": task.kind,
        "title": task.title,
        "status": task.status,
        "attempt": task.attempt.number,
        "summary": task.summary,
        "project_id": task.project_id,
        "goal_id": task.goal_id,
        "created_at": format_instant(task.created_at),
        "updated_at": format_instant(task.updated_at),
    }


def project_item(project: Project) -> dict[str, Any]:
    return {"id": project.id, "title": project.title, "created_at": format_instant(project.created_at)}


def _with_project(catalog: Catalog, event: Recorded) -> Catalog:
    project_id = event.session_id.removeprefix(PROJECT_STREAM)
    if project_id in catalog.projects:
        return catalog
    title = text(payload_object(event.payload), "title")
    project = Project(project_id, title, event.recorded_at, event.position)
    return replace(
        catalog,
        projects=catalog.projects.set(project_id, project),
        project_shelf=_shelved(catalog.project_shelf, _created_key(project), None, ""),
    )


def _with_goal(catalog: Catalog, before: Work, goal: Goal) -> Catalog:
    was = before.goals.get(goal.id)
    status_was = None if was is None else before.status_of(was)
    end_was = None if was is None else before.end_of(was)
    status, end = catalog.work.status_of(goal), catalog.work.end_of(goal)
    return replace(
        catalog,
        goals=_shelved(catalog.goals, _created_key(goal), status_was, status),
        ended=_ended(catalog.ended, "goal", goal.id, end_was, end),
    )


def _with_task(catalog: Catalog, was: Task | None, task: Task, session_id: str) -> Catalog:
    queue = catalog.queue
    if was is not None and was.claimable and not task.claimable:
        queue = queue.remove(_queue_key(was))
    elif task.claimable:
        queue = queue.add(_queue_key(task))
    return replace(
        catalog,
        tasks=_shelved(catalog.tasks, _created_key(task), None if was is None else was.status, task.status),
        queue=queue,
        ended=_ended(catalog.ended, "task", task.id, None if was is None else was.attempt.end, task.attempt.end),
        loops=_with_loop(catalog.loops, task, session_id),
        session_states=_counted(catalog.session_states, was, task, session_id),
    )


def _shelved(shelf: Shelf, key: Key, status_was: str | None, status: str) -> Shelf:
    if status == status_was:
        return shelf
    by_status = shelf.by_status
    if status_was is not None:
        by_status = by_status.set(status_was, by_status[status_was].remove(key))
    by_status = by_status.set(status, by_status.get(status, Ordered()).add(key))
    return Shelf(shelf.order.add(key), by_status, max(shelf.high_id, _number(key[2])))


def _ended(
    ended: Map[str, Ordered[Key]], sort: str, id_: str, was: End | None, end: End | None
) -> Map[str, Ordered[Key]]:
    if was is not None:
        name = f"{sort} {was.state}"
        ended = ended.set(name, ended[name].remove((was.recorded_at, was.position, id_)))
    if end is not None:
        name = f"{sort} {end.state}"
        ended = ended.set(name, ended.get(name, Ordered()).add((end.recorded_at, end.position, id_)))
    return ended


def _with_loop(loops: Ordered[Key], task: Task, session_id: str) -> Ordered[Key]:
    session = task.sessions.get(session_id)
    return loops if session is None or session.agent != daemons.LOOP else loops.add(_created_key(task))


def _counted(states: Map[str, int], was: Task | None, task: Task, session_id: str) -> Map[str, int]:
    session = task.sessions.get(session_id)
    if session is None:
        return states
    before = None if was is None else was.sessions.get(session_id)
    if before is not None:
        states = states.set(before.state, states[before.state] - 1)
    return states.set(session.state, states.get(session.state, 0) + 1)


T = TypeVar("T", Goal, Task)


def _page(
    shelf: Shelf, things: Map[str, T], status: str | None, project_id: str | None, below: Key | None, limit: int
) -> list[T]:
    """One thing more than `limit`, if there is one."""
    keys = shelf.order if status is None else shelf.in_status(status)
    found: list[T] = []
    for _, _, id_ in keys.falling(below):
        thing = things[id_]
        if project_id is None or thing.project_id == project_id:
            found.append(thing)
            if len(found) > limit:
                break
    return found


L = TypeVar("L", Goal, Task, Project)


def _listed(found: list[L], limit: int, item: Callable[[L], dict[str, Any]]) -> dict[str, Any]:
    shown = found[:limit]
    more = len(found) > limit and bool(shown)
    return {"items": [item(one) for one in shown], "next": shown[-1].id if more else None}


def _created_key(thing: Goal | Task | Project) -> Key:
    return (thing.created_at, thing.created_position, thing.id)


def _queue_key(task: Task) -> Key:
    return (task.attempt.queued_at, task.attempt.queued_position, task.id)


def _number(id_: str) -> int:
    """The id as a counter; 0 if it is a name."""
    if len(id_) > _DIGITS_MAX or not (id_.isascii() and id_.isdigit()) or id_.startswith("0"):
        return 0
    return int(id_)
