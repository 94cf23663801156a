"""The fold of one root: a goal with all its tasks, or a task that has no goal."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from immutables import Map
from msgspec.structs import replace

from ledger.events import kinds
from ledger.events.content import payload_object
from ledger.events.model import Recorded
from projections import activity, doing, pushes, usage, work
from projections.activity import Activity
from projections.doing import Doing
from projections.fold import Projection
from projections.narrative import Narrative, say, saying_of
from projections.payloads import text
from projections.pushes import Pushes
from projections.session import push_of
from projections.task import GOAL_RUN, Task
from projections.usage import Usage
from projections.work import GOAL_STREAM, Goal, Work


class Root(msgspec.Struct, frozen=True):
    """`skew_ns` is how far a claimed time lay in the future of its recording, at most."""

    work: Work = Work()
    narrative: Narrative = Narrative()
    pushes: Map[str, Pushes] = Map()
    usage: Usage = Usage()
    activity: Activity = Activity()
    doing: Map[str, Doing] = Map()  # by session_id
    skew_ns: int = 0

    @property
    def goal(self) -> Goal | None:
        """The goal that this root is; None for a task's own root, or before the goal is created."""
        return next(iter(self.work.goals.values()), None)


def evolve(root: Root, event: Recorded) -> Root:
    if event.at is not None and event.at - event.recorded_at > root.skew_ns:
        root = replace(root, skew_ns=event.at - event.recorded_at)
    if kinds.is_own_stream(event.session_id):
        return _decided(root, event)
    step = _STEPS.get(event.kind)
    return root if step is None else step(root, event)


def _decided(root: Root, event: Recorded) -> Root:
    """A decisive event: what it changed, told."""
    after = work.evolve(root.work, event)
    if after is root.work:
        return root
    return replace(root, work=after, narrative=_told(root.narrative, root.work, after, event))


def _pushed(root: Root, event: Recorded) -> Root:
    push = push_of(event)
    if push is None or event.task_id is None:
        return root
    root = _decided(root, event)
    before = root.pushes.get(event.session_id, Pushes())
    after, story = pushes.told(before, root.narrative, push, event)
    return replace(root, pushes=root.pushes.set(event.session_id, after), narrative=story)


def _commented(root: Root, event: Recorded) -> Root:
    return _acted(_said(root, event, "comment", "body"), event)


def _erred(root: Root, event: Recorded) -> Root:
    return _said(root, event, "error", "message")


def _said(root: Root, event: Recorded, kind: str, field: str) -> Root:
    payload = payload_object(event.payload)
    words, saying = text(payload, field), saying_of(event, payload)
    return replace(root, narrative=say(root.narrative, kind, words, event.task_id, saying, now=event.position))


def _acted(root: Root, event: Recorded) -> Root:
    after = activity.evolve(root.activity, event)
    return root if after is root.activity else replace(root, activity=after)


def _called(root: Root, event: Recorded) -> Root:
    return _did(_acted(root, event), event)


def _did(root: Root, event: Recorded) -> Root:
    after = doing.evolve(root.doing, event)
    return root if after is root.doing else replace(root, doing=after)


def _used(root: Root, event: Recorded) -> Root:
    session = root.work.session(event.session_id)
    rank = event.position if session is None else session.opened_position
    model = None if session is None else session.model
    return replace(root, usage=usage.evolve(root.usage, event, rank, model))


_STEPS: dict[str, Callable[[Root, Recorded], Root]] = {
    kinds.SESSION_OPENED: _decided,
    kinds.RESULT: _pushed,
    kinds.WAITING: _pushed,
    kinds.COMMENT: _commented,
    kinds.ERROR: _erred,
    kinds.TOOL_CALL: _called,
    kinds.TOOL_RESULT: _did,
    kinds.MESSAGE: _did,
    kinds.USAGE: _used,
}


def _told(story: Narrative, before: Work, after: Work, event: Recorded) -> Narrative:
    """The rows that the step from `before` to `after` makes."""
    goal_id = work.goal_id_of(event)
    goal = after.goals.get(goal_id) if goal_id is not None else None
    task_id = event.task_id
    if goal is not None:
        story = _told_of_goal(story, before.goals.get(goal.id), goal, event)
        if event.task_id is None:
            task_id = goal.run_task_id
    task = after.tasks.get(task_id) if task_id is not None else None
    if task is None:
        return story
    return _told_of_task(story, before.tasks.get(task.id), task, event)


def _told_of_goal(story: Narrative, before: Goal | None, goal: Goal, event: Recorded) -> Narrative:
    saying, now = saying_of(event), event.position
    if event.kind == kinds.GOAL_CREATED and event.session_id.startswith(GOAL_STREAM):
        story = say(story, "goal-created", goal.title, None, saying, now=now)
    if goal.runs > (0 if before is None else before.runs):
        story = say(story, "goal-started", _start(goal.runs), goal.run_task_id, saying, now=now)
    if goal.dropped is not None and (before is None or before.dropped is None):
        story = say(story, "goal-cancelled", goal.dropped.summary, None, saying, now=now)
    return story


def _told_of_task(story: Narrative, before: Task | None, task: Task, event: Recorded) -> Narrative:
    saying, now = saying_of(event), event.position
    attempt = task.attempt
    led_before = before is not None and before.attempt.lead is not None
    if task.kind != GOAL_RUN and attempt.lead is not None and not led_before:
        story = say(story, "task-started", _start(attempt.number), task.id, saying, now=now)
    ended_before = before.attempt.end if before is not None else None
    if attempt.end is None or attempt.end is ended_before:
        return story
    if ended_before is not None:
        saying = replace(saying, at=None)  # a copy may not change when the attempt ended
    subject = "goal" if task.kind == GOAL_RUN else "task"
    return say(
        story,
        f"{subject}-{attempt.end.state}",
        attempt.end.summary,
        task.id,
        saying,
        now=now,
        content=_content_of_end(task.id, attempt.number),
    )


def _content_of_end(task_id: str, attempt: int) -> bytes:
    """One row ends an attempt, whatever slots the results came in."""
    return f"end {attempt} {task_id}".encode()


def _start(number: int) -> str:
    return "Started" if number == 1 else f"Started again, attempt {number}"


ROOT = Projection(name="root", version="4", state_type=Root, initial=Root(), evolve=evolve)
