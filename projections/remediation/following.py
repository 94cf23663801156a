"""A run as it will stand when facts have been appended: what the next of them is made from."""

from __future__ import annotations

from collections.abc import Iterable

from ledger.events.decode import new_event
from ledger.events.model import Recorded
from projections.remediation.evolving import evolve
from projections.remediation.facts import Fact
from projections.remediation.state import Run


def after(run: Run, facts: Iterable[Fact], *, at: int = 0, actor: str = "") -> Run:
    """`at` is when, in ns: what is folded for good carries the log's own times."""
    for fact in facts:
        run = evolve(run, recorded(run.id, run.last_seq + 1, fact, at=at, actor=actor))
    return run


def recorded(run_id: str, seq: int, fact: Fact, *, at: int = 0, actor: str = "") -> Recorded:
    event = new_event(seq, fact.kind, actor, fact.payload, at)
    return Recorded(
        0, 0, run_id, seq, fact.kind, actor, at, at, run_id, f"task/{run_id}", event.payload, event.digest
    )
