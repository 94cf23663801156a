"""What an owner may ask of a loop as it stands, and as he has asked already."""

from __future__ import annotations

from projections.actions import HALT, RESUME, actions_of
from projections.loop_brakes import CLEARED_BY_A_RESUME, held_by
from projections.loop_state import Loop
from projections.task import Task


def loop_actions(task: Task, loop: Loop, asked: str | None) -> tuple[str, ...]:
    """`asked` is the action asked for last that the runner has not taken yet: the other one takes it back."""
    of_task = tuple(action for action in actions_of(task) if action in (HALT, RESUME))
    if not of_task:
        return ()
    if asked is not None:
        return (RESUME if asked == HALT else HALT,)
    if of_task == (HALT,) and held_by(loop) in CLEARED_BY_A_RESUME:
        return (RESUME, HALT)
    return of_task
