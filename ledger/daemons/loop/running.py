"""Daemon mode: one tick after the other, until a halt, or as often as it was told."""

from __future__ import annotations

from collections.abc import Callable

from ledger.daemons.agent import Stop
from ledger.daemons.loop.config import read_setup
from ledger.daemons.loop.folders import LoopFolder
from ledger.daemons.loop.ticking import Summary
from projections.loop_reasons import Reason


def run_daemon(
    folder: LoopFolder,
    tick: Callable[[], Summary],
    stop: Stop,
    *,
    interval_s: float | None = None,
    attempts_max: int | None = None,
    told: Callable[[Summary], None] = lambda _: None,
) -> Summary:
    """The summary of the last tick; `told` hears each. Between ticks, skipped ones too, it sleeps `interval_s`, by
    default what loop.json says by then. Raises what a tick raises."""
    attempts = 0
    while True:
        summary = tick()
        told(summary)
        attempts += 1
        if summary.halted or summary.reason == Reason.UNTRACKED or stop.is_set() or attempts == attempts_max:
            return summary
        pause_s = read_setup(folder).config.schedule.interval_seconds if interval_s is None else interval_s
        if stop.wait(pause_s):
            return summary
