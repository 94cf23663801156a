"""The fold of the ledger's own stream for remediation: what is configured, and which runs there are. A new run is
entered behind all that its starter has seen, so of two that start at once one is told of the other."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from ledger.events.content import payload_object
from ledger.events.model import NO_EVENTS, Recorded
from projections.payloads import identifier, text
from projections.remediation import words
from projections.remediation.facts import configuration_of
from projections.remediation.plan import Configuration

ROOT = "remediation"  # under which the stream lies
RUN_ENTERED = "remediation.run_entered"  # {run_id, owner}


class Entry(msgspec.Struct, frozen=True):
    """A run and whose it is; `at` in ns."""

    run_id: str
    owner: str
    at: int


class Register(msgspec.Struct, frozen=True):
    """`runs` in the order in which they were started; `configuration` is None before one was published. `last_seq`
    is where the stream stands."""

    configuration: Configuration | None = None
    runs: tuple[Entry, ...] = ()
    last_seq: int = NO_EVENTS

    def entry(self, run_id: str) -> Entry | None:
        return next((one for one in self.runs if one.run_id == run_id), None)


def evolve(register: Register, event: Recorded) -> Register:
    if event.seq <= register.last_seq:
        return register
    payload = payload_object(event.payload)
    if event.kind == words.CONFIGURED:
        register = replace(register, configuration=configuration_of(payload))
    elif event.kind == RUN_ENTERED and (run_id := identifier(payload, "run_id")) is not None:
        entry = Entry(run_id, text(payload, "owner") or event.actor, event.recorded_at)
        register = replace(register, runs=(*register.runs, entry))
    return replace(register, last_seq=event.seq)
