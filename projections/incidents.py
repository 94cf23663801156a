"""The register of incidents: what the sweep has filed, each once, with the sessions behind it.

An incident is known within its register by the fingerprint of its title. What is said of it again later, under the
same title or as a duplicate of it, is counted, never filed anew.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from immutables import Map
from msgspec.structs import replace

from ledger.events.content import payload_object
from ledger.events.model import END_SEQ, OPENING_SEQ, Recorded
from projections.fold import Projection
from projections.payloads import identifier, text
from projections.session import time_of
from projections.sweep import INCIDENT_FILED, INCIDENT_RECURRED, SWEEP_STARTED

HIGH, MEDIUM, LOW = "HIGH", "MEDIUM", "LOW"
SEVERITIES = (HIGH, MEDIUM, LOW)  # the worst first
SESSIONS_KEPT = 200  # of those behind one incident
TURNS_KEPT = 20  # of those in one session
NAME_CHARS_MAX, RULE_CHARS_MAX, SNIPPET_CHARS_MAX = 2_000, 100, 400

_FINGERPRINT_CHARS = 16


def fingerprint(title: str) -> str:
    """What an incident is known by: its title without case, accents of width, punctuation and white space."""
    folded = unicodedata.normalize("NFKC", title).casefold()
    words = "".join(char if char.isalnum() else " " for char in folded).split()
    return hashlib.sha256(" ".join(words).encode(errors="replace")).hexdigest()[:_FINGERPRINT_CHARS]


class Turn(msgspec.Struct, frozen=True, gc=False):
    """A moment of a session: the event of this `seq`, the rule that picked it out, and what that rule saw."""

    seq: int
    rule: str
    snippet: str


class Behind(msgspec.Struct, frozen=True, gc=False):
    """A session behind an incident, as its source knows it. `session_id` is that of the agent, which a ledger that
    watches the same host has too; None where the source knew none. `turns` are the moments that show the incident."""

    source: str
    key: str
    session_id: str | None = None
    turns: tuple[Turn, ...] = ()

    @property
    def name(self) -> tuple[str, str, str | None]:
        return (self.source, self.key, self.session_id)


class Recurrence(msgspec.Struct, frozen=True, gc=False):
    """The same once more: as it was titled then. `at` in ns."""

    title: str
    date: str
    at: int
    sweep: str


class Incident(msgspec.Struct, frozen=True):
    """As it was filed. `date` is when it happened, `filed_at` (ns) when the register learned of it, `sweep` the
    session of that run."""

    register: str
    fingerprint: str
    title: str
    date: str
    severity: str
    category: str
    what: str
    cost: str
    lesson: str
    filed_at: int
    sweep: str
    sessions: tuple[Behind, ...] = ()
    recurrences: tuple[Recurrence, ...] = ()


class Registers(msgspec.Struct, frozen=True):
    """The incidents of all registers by `register fingerprint`; `titles` are those of the registers by name."""

    incidents: Map[str, Incident] = Map()
    titles: Map[str, str] = Map()

    def get(self, register: str, fingerprint: str) -> Incident | None:
        return self.incidents.get(_name(register, fingerprint))

    def of(self, register: str) -> list[Incident]:
        """The incidents of one register, the worst first, then the newest."""
        return sorted((one for one in self.incidents.values() if one.register == register), key=rank)


def rank(incident: Incident) -> tuple[int, tuple[int, ...], str]:
    return (severity_rank(incident.severity), newest_first(incident.date), incident.fingerprint)


def severity_rank(severity: str) -> int:
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


def newest_first(date: str) -> tuple[int, ...]:
    """A key that sorts dates (`YYYY-MM-DD`) from the newest to the oldest."""
    return tuple(-ord(char) for char in date)


def evolve(registers: Registers, event: Recorded) -> Registers:
    step = _STEPS.get(event.kind)
    return registers if step is None else step(registers, event, payload_object(event.payload))


def _named(registers: Registers, event: Recorded, payload: Mapping[str, Any]) -> Registers:
    return replace(registers, titles=registers.titles.set(text(payload, "register"), text(payload, "title")))


def _filed(registers: Registers, event: Recorded, payload: Mapping[str, Any]) -> Registers:
    register, mark = text(payload, "register"), text(payload, "fingerprint")
    name = _name(register, mark)
    if not mark or name in registers.incidents:
        return registers
    incident = Incident(
        register=register,
        fingerprint=mark,
        title=text(payload, "title"),
        date=text(payload, "date"),
        severity=text(payload, "severity"),
        category=text(payload, "category"),
        what=text(payload, "what"),
        cost=text(payload, "cost"),
        lesson=text(payload, "lesson"),
        filed_at=time_of(event),
        sweep=event.session_id,
        sessions=sessions_of(payload),
    )
    return replace(registers, incidents=registers.incidents.set(name, incident))


def _recurred(registers: Registers, event: Recorded, payload: Mapping[str, Any]) -> Registers:
    name = _name(text(payload, "register"), text(payload, "fingerprint"))
    incident = registers.incidents.get(name)
    if incident is None:
        return registers
    again = Recurrence(text(payload, "title"), text(payload, "date"), time_of(event), event.session_id)
    after = replace(
        incident,
        recurrences=(*incident.recurrences, again),
        sessions=joined((*incident.sessions, *sessions_of(payload))),
    )
    return replace(registers, incidents=registers.incidents.set(name, after))


def sessions_of(payload: Mapping[str, Any]) -> tuple[Behind, ...]:
    """The sessions that `incident.filed` or `incident.recurred` names, each once."""
    return joined(
        Behind(
            text(row, "source")[:NAME_CHARS_MAX],
            text(row, "key")[:NAME_CHARS_MAX],
            identifier(row, "session_id"),
            _turns(row),
        )
        for row in rows_of(payload, "sessions")[:SESSIONS_KEPT]
    )


def joined(sessions: Iterable[Behind]) -> tuple[Behind, ...]:
    """Each session once, with all of its turns in order, as far as they are kept."""
    found: dict[tuple[str, str, str | None], Behind] = {}
    for one in sessions:
        known = found.get(one.name)
        if known is not None:
            turns = {turn.seq: turn for turn in (*one.turns, *known.turns)}
            one = replace(known, turns=tuple(turns[seq] for seq in sorted(turns))[:TURNS_KEPT])
        if known is not None or len(found) < SESSIONS_KEPT:
            found[one.name] = one
    return tuple(found.values())


def rows_of(payload: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects in a list of a payload; none where there is no list."""
    found = payload.get(name)
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def _turns(row: Mapping[str, Any]) -> tuple[Turn, ...]:
    turns = {
        seq: Turn(seq, text(turn, "rule")[:RULE_CHARS_MAX], text(turn, "snippet")[:SNIPPET_CHARS_MAX])
        for turn in rows_of(row, "turns")
        if (seq := seq_of(turn)) is not None
    }
    return tuple(turns[seq] for seq in sorted(turns))[:TURNS_KEPT]


def seq_of(row: Mapping[str, Any]) -> int | None:
    """The `seq` of a row, where it can be that of an event."""
    seq = row.get("seq")
    is_seq = isinstance(seq, int) and not isinstance(seq, bool) and OPENING_SEQ <= seq < END_SEQ
    return seq if is_seq else None


def _name(register: str, fingerprint: str) -> str:
    return f"{register} {fingerprint}"


_STEPS: dict[str, Callable[[Registers, Recorded, Mapping[str, Any]], Registers]] = {
    SWEEP_STARTED: _named,
    INCIDENT_FILED: _filed,
    INCIDENT_RECURRED: _recurred,
}

REGISTERS = Projection(name="registers", version="1", state_type=Registers, initial=Registers(), evolve=evolve)
