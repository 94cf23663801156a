"""One session: how it was opened, what state it said it is in."""

from __future__ import annotations

from typing import Any

import msgspec

from ledger.events import kinds
from ledger.events.content import parse_payload, payload_object
from ledger.events.model import Recorded
from ledger.events.times import format_instant
from projections.payloads import identifier, text, text_or_none


class Push(msgspec.Struct, frozen=True, gc=False):
    """A state as a session pushed it: by a result, or by a `waiting` event."""

    state: str
    text: str

    @property
    def terminal(self) -> bool:
        return self.state in kinds.TERMINAL_STATES


class Session(msgspec.Struct, frozen=True, gc=False):
    """`attempt` is the number of the attempt that was open when the session was. `same_run_as` is another session
    that reports the same run of the agent. `state_seq` is the seq of the push that `state` comes from, -1 before any,
    and `state_claimed_at` when it happened as the sender claims. Times in ns since the epoch."""

    session_id: str
    task_id: str
    attempt: int
    opened_at: int
    opened_position: int
    saddle: str
    agent: str | None = None
    model: str | None = None
    cwd: str | None = None
    host: str | None = None
    resumed_from: str | None = None
    parent_session_id: str | None = None
    same_run_as: str | None = None
    state: str = kinds.WORKING
    state_text: str = ""
    state_at: int = 0
    state_seq: int = -1
    state_claimed_at: int | None = None

    @property
    def run(self) -> str:
        """What the run of the agent is known by: all sessions that report it have the same."""
        return self.same_run_as or self.session_id

    @property
    def is_child(self) -> bool:
        return self.parent_session_id is not None

    @property
    def ended(self) -> bool:
        return self.state in kinds.TERMINAL_STATES


def time_of(event: Recorded) -> int:
    """When it happened: as the sender claims, else when it was recorded; in ns."""
    return event.recorded_at if event.at is None else event.at


def push_of(event: Recorded) -> Push | None:
    """The state that an event of a session pushes; None if it pushes none."""
    if event.kind == kinds.WAITING:
        return Push(kinds.WAITING, text(payload_object(event.payload), "question"))
    if event.kind != kinds.RESULT:
        return None
    payload = payload_object(event.payload)
    state = payload.get("state")
    if not isinstance(state, str) or state not in kinds.STATES:
        return None
    return Push(state, text(payload, "summary"))


def opened(event: Recorded, task_id: str, attempt: int) -> Session:
    payload = payload_object(event.payload)
    return Session(
        session_id=event.session_id,
        task_id=task_id,
        attempt=attempt,
        opened_at=time_of(event),
        opened_position=event.position,
        saddle=text(payload, "saddle") or event.actor,
        agent=text_or_none(payload, "agent"),
        model=text_or_none(payload, "model"),
        cwd=text_or_none(payload, "cwd"),
        host=text_or_none(payload, "host"),
        resumed_from=identifier(payload, "resumed_from"),
        parent_session_id=identifier(payload, "parent_session_id"),
        same_run_as=identifier(payload, "same_run_as"),
        state_at=time_of(event),
    )


def pushed(session: Session, push: Push, event: Recorded) -> Session:
    """The first terminal push recorded ends a session for good; before it the push with the highest seq counts,
    whatever order they came in."""
    if session.ended or (not push.terminal and event.seq <= session.state_seq):
        return session
    return msgspec.structs.replace(
        session,
        state=push.state,
        state_text=push.text,
        state_at=time_of(event),
        state_seq=event.seq,
        state_claimed_at=event.at,
    )


class Lost(msgspec.Struct, frozen=True):
    """Other content that came for a slot that was taken; `received_at` in ns."""

    seq: int
    kind: str
    actor: str
    payload: bytes
    received_at: int


class StreamFacts(msgspec.Struct, frozen=True):
    """What the store knows of a session's stream and no fold keeps. `events` counts its rows, the opening included;
    `high_seq` is -1 before any push; `deliveries` is how its events came in, as counts by name."""

    events: int = 0
    high_seq: int = -1
    last_at: int | None = None
    missing: tuple[tuple[int, int], ...] = ()
    conflicts: tuple[Lost, ...] = ()
    deliveries: dict[str, int] = {}


def session_item(session: Session) -> dict[str, Any]:
    """A session as a task's page lists it."""
    return {
        "session_id": session.session_id,
        "attempt": session.attempt,
        "state": session.state,
        "agent": session.agent,
        "model": session.model,
        "host": session.host,
        "saddle": session.saddle,
        "resumed_from": session.resumed_from,
        "parent_session_id": session.parent_session_id,
        "same_run_as": session.same_run_as,
        "opened_at": format_instant(session.opened_at),
    }


def stream_item(facts: StreamFacts) -> dict[str, Any]:
    """What the store knows of a session, ready for JSON."""
    return {
        "last_at": None if facts.last_at is None else format_instant(facts.last_at),
        "events": facts.events,
        "high_seq": facts.high_seq if facts.high_seq >= 0 else None,
        "missing": [list(gap) for gap in facts.missing],
        "conflicts": [
            {
                "seq": lost.seq,
                "kind": lost.kind,
                "actor": lost.actor,
                "payload": parse_payload(lost.payload),
                "received_at": format_instant(lost.received_at),
            }
            for lost in facts.conflicts
        ],
        "deliveries": dict(facts.deliveries),
    }
