"""What a decision comes to, as pure functions: state in, facts out, or NotOffered with the reason."""

from __future__ import annotations

from collections.abc import Sequence

from ledger.commands.writing import Fact, of_goal, of_task, task_created
from ledger.errors import NotOffered
from ledger.events import kinds
from projections.actions import actions_of, goal_actions
from projections.task import GOAL_RUN, Task
from projections.work import Goal, Work


def decide_goal(action: str, goal: Goal, work: Work, new_task_id: str, reason: str) -> list[Fact]:
    """`work` is that of the goal's root. `new_task_id` is free, for a decision that makes the run task."""
    status = work.status_of(goal)
    _check_offered(action, f"goal {goal.id}", status, goal_actions(status))
    run_task_id = goal.run_task_id or new_task_id
    run_task = task_created(
        run_task_id, GOAL_RUN, goal.title, brief=goal.brief, project_id=goal.project_id, goal_id=goal.id
    )
    match action:
        case "start":
            return [of_goal(goal.id, kinds.GOAL_STARTED, run_task_id=run_task_id), run_task]
        case "cancel":
            open_tasks = [task for task in work.tasks.values() if task.attempt.end is None]
            cancelled = [of_task(task.id, kinds.TASK_CANCELLED, reason=reason) for task in open_tasks]
            return [of_goal(goal.id, kinds.GOAL_CANCELLED, reason=reason), *cancelled]
        case "reopen" if goal.run_task_id is None:  # cancelled before it was ever started
            return [of_goal(goal.id, kinds.GOAL_REOPENED, run_task_id=run_task_id), run_task]
        case "reopen":
            return [
                of_goal(goal.id, kinds.GOAL_REOPENED, run_task_id=run_task_id),
                of_task(run_task_id, kinds.TASK_REQUEUED),
            ]
    raise ValueError(action)


def decide_task(action: str, task: Task, reason: str, also: Sequence[str] = ()) -> list[Fact]:
    """`also` are decisions that are open to it for a reason that the task does not show."""
    _check_offered(action, f"task {task.id}", task.status, (*actions_of(task), *also))
    match action:
        case "requeue":
            return [of_task(task.id, kinds.TASK_REQUEUED)]
        case "cancel":
            return [of_task(task.id, kinds.TASK_CANCELLED, reason=reason)]
        case "block":
            return [of_task(task.id, kinds.TASK_BLOCKED, reason=reason)]
        case "unblock":
            return [of_task(task.id, kinds.TASK_UNBLOCKED)]
        case "halt":
            return [of_task(task.id, kinds.LOOP_HALT_REQUESTED, reason=reason)]
        case "resume":
            return [of_task(task.id, kinds.LOOP_RESUME_REQUESTED, reason=reason)]
    raise ValueError(action)


def _check_offered(action: str, what: str, status: str, offered: tuple[str, ...]) -> None:
    if action not in offered:
        open_now = ", ".join(offered) or "nothing"
        raise NotOffered(f"{what} is {status}: {action} is not open to it, {open_now} is")
