"""One tick, in the order that the runner promises: found, locked, gate, task, context floor, round."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import msgspec

from ledger.client.saddle import Saddle
from ledger.daemons.agent import Stopping, end_leftovers
from ledger.daemons.loop import requests
from ledger.daemons.loop.asking import Unanswered, ask_gate, ask_probe
from ledger.daemons.loop.config import Asked, Setup, read_setup, words_of
from ledger.daemons.loop.deciding import Halt
from ledger.daemons.loop.folders import LoopFolder
from ledger.daemons.loop.journal import Journal, halted, open_journal
from ledger.daemons.loop.locking import tick_lock
from ledger.daemons.loop.rounds import RoundOf
from ledger.daemons.loop.views import write_views
from projections.loop_brakes import held_by
from projections.loop_reasons import Reason
from projections.loop_state import CONFIGURED, TICK_SKIPPED, Loop
from projections.loop_views import verdict_item

_HALTS = frozenset(
    {
        Reason.BROKEN_OFF,
        Reason.IMPLEMENT_FAILED,
        Reason.SCOPE_VIOLATION,
        Reason.VERIFIER_CHANGED,
        Reason.VERIFIER_FAILED,
    }
)


class Summary(msgspec.Struct, frozen=True):
    """How a tick ended. `skipped`: it completed no round and halted nothing; `halted`: the loop stands now."""

    loop: str
    skipped: bool
    halted: bool
    reason: str | None
    iter: int
    verdict: dict[str, Any] | None


def tick(folder: LoopFolder, open_saddle: Callable[[], AbstractContextManager[Saddle]], stop: Stopping) -> Summary:
    """Raises InvalidLoop and GitFailed, with nothing changed and no agent started, and StorageError, after which the
    next tick goes on where this one stood."""
    if not folder.is_there:
        return Summary(folder.name, True, False, Reason.UNTRACKED, 0, None)
    with tick_lock(folder.lock) as taken:
        setup = read_setup(folder)
        folder.make()
        with open_saddle() as saddle:
            journal = open_journal(saddle, folder, setup.config if taken else None)
            if journal is None:
                return Summary(folder.name, True, False, Reason.LOCKED, 0, None)
            if not taken:
                return _skipped(folder, journal, Reason.LOCKED)
            end_leftovers(folder.outputs)
            record_setup(journal, setup)
            requests.take(journal, _asked(saddle, journal))
            summary = _tick(folder, setup, journal, stop)
            write_views(folder, journal.read())
            return summary


def record_setup(journal: Journal, setup: Setup) -> None:
    """Says how the loop is configured, where that was not said yet."""
    said = {"name": setup.config.name, "config": msgspec.to_builtins(setup.config), "digest": setup.digest}
    journal.add(lambda loop: [] if loop.config_digest == setup.digest else [(CONFIGURED, said)])


def _asked(saddle: Saddle, journal: Journal) -> list[requests.Request]:
    return requests.asked(saddle, journal.session.id, max(journal.loop.taken_requests, default=-1))


def _tick(folder: LoopFolder, setup: Setup, journal: Journal, stop: Stopping) -> Summary:
    loop = journal.read_usage()
    if held := held_by(loop):
        return _skipped(folder, journal, held)
    try:
        gate = _words_of(setup.config.gate)
        answer = None if gate is None else ask_gate(gate, **_how(folder, journal, setup.config.gate, stop))
    except Unanswered as why:
        return _unanswered(folder, journal, Reason.GATE_SUBPROCESS_FAILED, why, stop)
    if answer is not None and not answer.ok:
        reason = answer.reason or answer.halt_reason or "gate"
        return _skipped(folder, journal, reason, halt_reason=answer.halt_reason)
    if not loop.current_task:
        return _skipped(folder, journal, Reason.NO_CURRENT_TASK)
    try:
        probe = _words_of(setup.config.context_probe)
        how = _how(folder, journal, setup.config.context_probe, stop)
        if probe is not None and not ask_probe(probe, **how):
            return _below_floor(folder, journal)
    except Unanswered as why:
        return _unanswered(folder, journal, Reason.CONTEXT_PROBE_FAILED, why, stop)
    return _summed_up(folder, journal, RoundOf(folder, setup, journal, stop).work())


def _unanswered(folder: LoopFolder, journal: Journal, reason: Reason, why: Unanswered, stop: Stopping) -> Summary:
    return _skipped(folder, journal, Reason.INTERRUPTED if stop.is_set() else reason, detail=str(why))


def _below_floor(folder: LoopFolder, journal: Journal) -> Summary:
    halt = Halt(Reason.CONTEXT_BELOW_FLOOR, halt_reason=Reason.HUMAN_INTERVENTION)
    journal.add(lambda loop: [] if loop.halt else halted(halt))
    return _summary(folder, journal.loop, skipped=False, reason=Reason.CONTEXT_BELOW_FLOOR)


def _summed_up(folder: LoopFolder, journal: Journal, why: str | None) -> Summary:
    loop = journal.read()
    if why is None:
        done = _summary(folder, loop, skipped=False, reason=None)
        return msgspec.structs.replace(done, verdict=verdict_item(loop.last_verdict))
    if why in _HALTS:
        return _summary(folder, loop, skipped=False, reason=why)
    if why == Reason.INTERRUPTED:  # which was recorded where it happened
        return _summary(folder, loop, skipped=True, reason=why)
    return _skipped(folder, journal, why)


def _skipped(folder: LoopFolder, journal: Journal, reason: str, **more: str | None) -> Summary:
    payload = {"reason": str(reason), **{name: value for name, value in more.items() if value}}
    journal.add(lambda _: [(TICK_SKIPPED, payload)])
    return _summary(folder, journal.loop, skipped=True, reason=reason)


def _summary(folder: LoopFolder, loop: Loop, *, skipped: bool, reason: str | None) -> Summary:
    said = None if reason is None else str(reason)
    return Summary(folder.name, skipped, loop.halt is not None, said, loop.iteration_count, None)


def _words_of(asked: Asked) -> tuple[str, ...] | None:
    return words_of(asked.command, "command")


def _how(folder: LoopFolder, journal: Journal, asked: Asked, stop: Stopping) -> Mapping[str, Any]:
    return {
        "journal": journal,
        "cwd": folder.project,
        "time_s": asked.time_limit_s,
        "stop": stop,
        "environment": {"LEDGERD_LOOP": folder.name},
    }
