"""Which decisions are open to a goal or a task. The deciders ask the same functions as the views."""

from __future__ import annotations

from collections.abc import Iterable

from ledger.events.kinds import SUSPENDED, TERMINAL_STATES
from projections.task import Task
from projections.work import CREATED

START, CANCEL, REOPEN = "start", "cancel", "reopen"
REQUEUE, BLOCK, UNBLOCK = "requeue", "block", "unblock"
HALT, RESUME = "halt", "resume"  # of a loop


def goal_actions(status: str) -> tuple[str, ...]:
    """The decisions open to a goal of this status."""
    if status in TERMINAL_STATES:
        return (REOPEN,)
    return (START, CANCEL) if status == CREATED else (CANCEL,)


def task_actions(status: str, *, blocked: bool, loops: bool = False) -> tuple[str, ...]:
    """The decisions open to a task of this status. One that `loops` can be asked to halt, or to go on."""
    if status in TERMINAL_STATES:
        return (REQUEUE,)
    asked = (RESUME if status == SUSPENDED else HALT,) if loops else ()
    return (*asked, CANCEL, UNBLOCK if blocked else BLOCK)


def actions_of(task: Task) -> tuple[str, ...]:
    return task_actions(task.status, blocked=bool(task.blocks), loops=task.loops)


def links(base: str, names: Iterable[str]) -> dict[str, dict[str, str]]:
    """The decisions as the JSON offers them, `base` being the path of the thing (`/api/goals/7`)."""
    return {name: {"method": "POST", "href": f"{base}/{name}"} for name in names}
