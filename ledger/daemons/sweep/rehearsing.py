"""A run that changes nothing: no lock, no file, no event, no hook, and no model unless it is asked for."""

from __future__ import annotations

import msgspec

from ledger.daemons.sweep import seen_list
from ledger.daemons.sweep.ending import counted, headline_of, notes_of, quiet_headline
from ledger.daemons.sweep.filing import Plan
from ledger.daemons.sweep.journal import State, read_state
from ledger.daemons.sweep.judging.prompt import numbered_candidates
from ledger.daemons.sweep.runner import Parts, judged
from ledger.daemons.sweep.scanning import Scanned, keys_of, scan
from projections.sweep import name_of


class Rehearsed(msgspec.Struct, frozen=True):
    """What a run would find; `plan` is what it would file, where the judge was asked. `notes` are for a person."""

    scanned: Scanned
    plan: Plan | None
    notes: tuple[str, ...]

    @property
    def headline(self) -> str:
        if self.plan is not None:
            return f"would be: {headline_of([self.plan])}"
        if not self.scanned.chosen:
            return quiet_headline(self.scanned)
        candidates, sessions = len(self.scanned.candidates), len(self.scanned.chosen)
        return f"{counted(candidates, 'candidate')} of {counted(sessions, 'session')} would be judged"


def look(parts: Parts, *, whole: bool = False) -> tuple[Scanned, State]:
    """Looks at what is not seen yet; with `whole` at all there is, the first run included. Raises StateDamaged,
    SeenListDamaged."""
    config = parts.config
    state = read_state(config.state)
    listed = frozenset() if config.seen_list is None else seen_list.read(config.seen_list, parts.guard)
    scanned = scan(
        parts.sources,
        parts.prefilter,
        config.keys.scan,
        seen=lambda name: not whole and (name in state.sweeps.seen or name in listed),
        is_initialised=lambda source: whole or source in state.sweeps.initialised or name_of(source, "") in listed,
        redact=parts.redact,
        stop=parts.stop,
    )
    return scanned, state


def rehearse(parts: Parts, *, with_judge: bool) -> Rehearsed:
    """What a run would do now. Raises JudgeFailed, and what `look` raises."""
    if parts.repository is not None:
        parts.repository.check()
    scanned, state = look(parts)
    notes = notes_of(scanned)
    if state.sweeps.pending is not None:
        notes.append("first it would finish what an earlier run had judged")
    plan = None
    if with_judge and scanned.chosen:
        known = parts.register.known(state.registers)
        plan = judged(
            parts, numbered_candidates(scanned.candidates), known, keys_of(scanned.chosen), lambda _counts: None
        )
    return Rehearsed(scanned, plan, tuple(notes))
