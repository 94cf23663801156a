"""Which decisions are open to a goal or a task. The deciders ask the same functions as the views."""

from __future__ import annotations

from collections.abc import Iterable

from ledger.events.kinds import TERMINAL_STATES
from projections.work import CREATED

START, CANCEL, REOPEN = "start", "cancel", "reopen"
REQUEUE, BLOCK, UNBLOCK = "requeue", "block", "unblock"


def goal_actions(status: str) -> tuple[str, ...]:
    """The decisions open to a goal of this status."""
    if status in TERMINAL_STATES:
        return (REOPEN,)
    return (START, CANCEL) if status == CREATED else (CANCEL,)


def task_actions(status: str, *, blocked: bool) -> tuple[str, ...]:
    """The decisions open to a task of this status."""
    if status in TERMINAL_STATES:
        return (REQUEUE,)
    return (CANCEL, UNBLOCK if blocked else BLOCK)


def links(base: str, names: Iterable[str]) -> dict[str, dict[str, str]]:
    """The decisions as the JSON offers them, `base` being the path of the thing (`/api/goals/7`)."""
    return {name: {"method": "POST", "href": f"{base}/{name}"} for name in names}
