"""What owners decided about incidents, in the ledger's own stream for them, and how an incident stands by it.

An incident is open until somebody says otherwise. One that happens again after it was resolved is open again: what
counts is the day on which it happened, and that a sweep judged it after the decision.
"""

from __future__ import annotations

import msgspec
from immutables import Map
from msgspec.structs import replace

from ledger.events.content import payload_object
from ledger.events.model import NO_EVENTS, Recorded
from projections.incidents_board import Found, day_of
from projections.payloads import text

STREAM, ROOT = "@incidents", "incidents"

INCIDENT_ACKNOWLEDGED = "incident.acknowledged"  # {incident, register, fingerprint, title, reason}
INCIDENT_RESOLVED = "incident.resolved"
INCIDENT_REOPENED = "incident.reopened"

OPEN, ACKNOWLEDGED, RESOLVED = "open", "acknowledged", "resolved"
STATUSES = (OPEN, ACKNOWLEDGED, RESOLVED)
ACKNOWLEDGE, RESOLVE, REOPEN = "acknowledge", "resolve", "reopen"

KIND_OF = {ACKNOWLEDGE: INCIDENT_ACKNOWLEDGED, RESOLVE: INCIDENT_RESOLVED, REOPEN: INCIDENT_REOPENED}
_STATUS_AFTER = {INCIDENT_ACKNOWLEDGED: ACKNOWLEDGED, INCIDENT_RESOLVED: RESOLVED, INCIDENT_REOPENED: OPEN}
_ACTIONS = {OPEN: (ACKNOWLEDGE, RESOLVE), ACKNOWLEDGED: (RESOLVE, REOPEN), RESOLVED: (REOPEN,)}


class Decision(msgspec.Struct, frozen=True, gc=False):
    """What somebody decided, and why. `at` in ns."""

    status: str
    by: str
    at: int
    reason: str


class Decided(msgspec.Struct, frozen=True):
    """The decisions about each incident, by `incidents_board.incident_id`, the oldest first. `last_seq` is where the
    stream stands."""

    about: Map[str, tuple[Decision, ...]] = Map()
    last_seq: int = NO_EVENTS


class Standing(msgspec.Struct, frozen=True):
    """How an incident stands. `came_back`: it was resolved, and happened again."""

    status: str = OPEN
    came_back: bool = False
    decisions: tuple[Decision, ...] = ()

    @property
    def actions(self) -> tuple[str, ...]:
        return _ACTIONS[self.status]


def evolve(decided: Decided, event: Recorded) -> Decided:
    if event.seq <= decided.last_seq:
        return decided
    status = _STATUS_AFTER.get(event.kind)
    if status is not None:
        payload = payload_object(event.payload)
        name = text(payload, "incident")
        decision = Decision(status, event.actor, event.recorded_at, text(payload, "reason"))
        decided = replace(decided, about=decided.about.set(name, (*decided.about.get(name, ()), decision)))
    return replace(decided, last_seq=event.seq)


def standing(found: Found, decided: Decided) -> Standing:
    decisions = decided.about.get(found.id, ())
    if not decisions:
        return Standing()
    last = decisions[-1]
    if last.status == RESOLVED and any(
        one.at > last.at and one.date >= day_of(last.at) for one in found.again.values()
    ):
        return Standing(OPEN, True, decisions)
    return Standing(last.status, False, decisions)
