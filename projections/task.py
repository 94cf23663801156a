"""One task's life: its attempts, the sessions that worked on it, what ended it, what blocks it.

    queued → working ⇄ waiting/suspended → done | failed | cancelled

The first terminal result recorded for an attempt ends it; later ones change nothing. A requeue opens the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from immutables import Map
from msgspec.structs import replace

from ledger.events import kinds
from ledger.events.content import payload_object
from ledger.events.model import NO_EVENTS, OPENING_SEQ, Recorded
from ledger.events.times import format_instant
from projections import daemons
from projections import session as sessions
from projections.payloads import identifier, text
from projections.session import Push, Session, push_of, time_of

QUEUED = "queued"
ORDINARY, GOAL_RUN = "task", "goal_run"
LIVE_STATES = (kinds.WORKING, kinds.WAITING, kinds.SUSPENDED)


class End(msgspec.Struct, frozen=True, gc=False):
    """What ended an attempt. `said_by` are the streams that said the same, the one that ended it first; `at` is in
    ns, `position` and `recorded_at` are those of the event that ended it."""

    state: str
    summary: str
    at: int
    recorded_at: int
    position: int
    said_by: tuple[str, ...]


class Attempt(msgspec.Struct, frozen=True, gc=False):
    """`lead` is the session opened last that is no child of another: its state is the attempt's until the end.
    `latest` is the one opened last of any. Times in ns."""

    number: int
    queued_at: int
    queued_position: int
    claimed_at: int | None = None
    started_at: int | None = None
    lead: str | None = None
    latest: str | None = None
    end: End | None = None


class Block(msgspec.Struct, frozen=True, gc=False):
    reason: str
    at: int
    actor: str


class Task(msgspec.Struct, frozen=True, gc=False):
    """`last_seq` is where the task's own stream stands. Times in ns."""

    id: str
    created_at: int
    created_position: int
    attempts: tuple[Attempt, ...]
    kind: str = ORDINARY
    title: str = ""
    brief: str = ""
    project_id: str | None = None
    goal_id: str | None = None
    updated_at: int = 0
    last_seq: int = NO_EVENTS
    sessions: Map[str, Session] = Map()
    reporters: Map[str, tuple[str, ...]] = Map()  # session_id → the sessions that say they report the same run
    blocks: tuple[Block, ...] = ()

    @property
    def attempt(self) -> Attempt:
        """The current attempt."""
        return self.attempts[-1]

    @property
    def status(self) -> str:
        attempt = self.attempt
        if attempt.end is not None:
            return attempt.end.state
        session = self.current_session
        if session is not None:
            return kinds.WORKING if session.ended else session.state
        return QUEUED if attempt.claimed_at is None else kinds.WORKING

    @property
    def current_session(self) -> Session | None:
        """The session whose state is the task's; None where none was opened in the current attempt. Where several
        report the run that was opened last, the one that was the last to say how it stands."""
        name = self.attempt.lead or self.attempt.latest
        if name is None:
            return None
        lead = self.sessions[name]
        names = (lead.run, *self.reporters.get(lead.run, ()))
        of_run = [one for name in names if (one := self.sessions.get(name)) is not None]
        told = [one for one in of_run if one.attempt == lead.attempt and one.is_child == lead.is_child]
        return max((one for one in told if not one.ended), key=_last_word, default=lead)

    @property
    def loops(self) -> bool:
        """Whether the current attempt is a loop."""
        return any(one.attempt == self.attempt.number and one.agent == daemons.LOOP for one in self.sessions.values())

    @property
    def claimable(self) -> bool:
        return not self.blocks and self.status == QUEUED

    @property
    def summary(self) -> str | None:
        """What ended the current attempt, in words; None while it is open or where nothing was said."""
        end = self.attempt.end
        return end.summary or None if end is not None else None

    def sessions_of(self, attempt: int | None = None) -> list[Session]:
        """The sessions in the order in which they were opened, all or those of one attempt."""
        chosen: Iterator[Session] = iter(self.sessions.values())
        if attempt is not None:
            chosen = (one for one in chosen if one.attempt == attempt)
        return sorted(chosen, key=lambda one: one.opened_position)


def new_task(task_id: str, event: Recorded, goal_id: str | None) -> Task:
    """A task as it stands when an event first speaks of it."""
    return Task(
        id=task_id,
        created_at=event.recorded_at,
        created_position=event.position,
        attempts=(Attempt(1, event.recorded_at, event.position),),
        goal_id=goal_id,
        updated_at=event.recorded_at,
    )


def evolve(task: Task, event: Recorded) -> Task:
    """The task after an event of its own stream or of one of its sessions; the same object if nothing changed."""
    if kinds.is_own_stream(event.session_id):
        changed = replace(_decided(task, event), last_seq=event.seq)
    elif event.kind == kinds.SESSION_OPENED and event.seq == OPENING_SEQ:
        changed = _opened(task, event)
    else:
        push = push_of(event)
        changed = task if push is None else _pushed(task, push, event)
    return task if changed is task else replace(changed, updated_at=event.recorded_at)


def requeue(task: Task, event: Recorded) -> Task:
    """Opens the next attempt, unless the current one is open still."""
    if task.attempt.end is None:
        return task
    following = Attempt(task.attempt.number + 1, event.recorded_at, event.position)
    return replace(task, attempts=(*task.attempts, following), updated_at=event.recorded_at)


def cancel(task: Task, event: Recorded, reason: str) -> Task:
    """Ends the current attempt as cancelled, unless it has ended."""
    return _ended(task, Push(kinds.CANCELLED, reason), event)


def _decided(task: Task, event: Recorded) -> Task:
    match event.kind:
        case kinds.TASK_CREATED:
            return _created(task, event)
        case kinds.TASK_CLAIMED:
            attempt = task.attempt
            if attempt.end is not None or attempt.claimed_at is not None:
                return task
            started_at = time_of(event) if attempt.started_at is None else attempt.started_at
            return _with_attempt(task, replace(attempt, claimed_at=time_of(event), started_at=started_at))
        case kinds.TASK_REQUEUED:
            return requeue(task, event)
        case kinds.TASK_CANCELLED:
            return cancel(task, event, text(payload_object(event.payload), "reason"))
        case kinds.TASK_BLOCKED:
            reason = text(payload_object(event.payload), "reason")
            return replace(task, blocks=(*task.blocks, Block(reason, time_of(event), event.actor)))
        case kinds.TASK_UNBLOCKED:
            return replace(task, blocks=()) if task.blocks else task
    return task


def _created(task: Task, event: Recorded) -> Task:
    payload = payload_object(event.payload)
    return replace(
        task,
        kind=GOAL_RUN if payload.get("kind") == GOAL_RUN else ORDINARY,
        title=text(payload, "title"),
        brief=text(payload, "brief"),
        project_id=identifier(payload, "project_id"),
        goal_id=task.goal_id or identifier(payload, "goal_id"),
    )


def _opened(task: Task, event: Recorded) -> Task:
    attempt = task.attempt
    session = sessions.opened(event, task.id, attempt.number)
    task = replace(task, sessions=task.sessions.set(session.session_id, session))
    if session.same_run_as is not None:
        others = task.reporters.get(session.run, ())
        task = replace(task, reporters=task.reporters.set(session.run, (*others, session.session_id)))
    return _with_attempt(
        task,
        replace(
            attempt,
            started_at=session.opened_at if attempt.started_at is None else attempt.started_at,
            lead=attempt.lead if session.is_child else session.session_id,
            latest=session.session_id,
        ),
    )


def _last_word(session: Session) -> tuple[bool, int, int]:
    """Of several sessions that report one run: by what was claimed, whatever order it came in."""
    return session.state_seq >= 0, session.state_claimed_at or 0, session.opened_position


def _pushed(task: Task, push: Push, event: Recorded) -> Task:
    session = task.sessions.get(event.session_id)
    if session is None:
        return task
    after = sessions.pushed(session, push, event)
    if after is not session:
        task = replace(task, sessions=task.sessions.set(session.session_id, after))
    if push.terminal and session.attempt == task.attempt.number and not session.is_child:
        return _ended(task, push, event)
    return task


def _ended(task: Task, push: Push, event: Recorded) -> Task:
    attempt = task.attempt
    end = attempt.end
    if end is None:
        end = End(push.state, push.text, time_of(event), event.recorded_at, event.position, (event.session_id,))
        return _with_attempt(task, replace(attempt, end=end))
    if (push.state, push.text) != (end.state, end.summary) or kinds.is_own_stream(event.session_id):
        return task
    if event.session_id in end.said_by:
        return task
    return _with_attempt(task, replace(attempt, end=replace(end, said_by=(*end.said_by, event.session_id))))


def _with_attempt(task: Task, attempt: Attempt) -> Task:
    return replace(task, attempts=(*task.attempts[:-1], attempt))


def blocks_of(task: Task) -> list[dict[str, Any]]:
    return [{"reason": block.reason, "at": format_instant(block.at), "actor": block.actor} for block in task.blocks]


def attempts_of(task: Task) -> list[dict[str, Any]]:
    """The attempts as a task's page lists them, the first one first."""
    by_attempt: dict[int, list[str]] = {}
    for session in task.sessions_of():
        by_attempt.setdefault(session.attempt, []).append(session.session_id)
    return [
        {
            "attempt": attempt.number,
            "status": attempt.end.state if attempt.end is not None else task.status,
            "started_at": None if attempt.started_at is None else format_instant(attempt.started_at),
            "ended_at": None if attempt.end is None else format_instant(attempt.end.at),
            "summary": attempt.end.summary or None if attempt.end is not None else None,
            "sessions": by_attempt.get(attempt.number, []),
        }
        for attempt in task.attempts
    ]
