"""Daemon mode: one tick after the other, until a halt, or as often as it was told."""

from __future__ import annotations

from collections.abc import Callable

from ledger.daemons.agent import Stop
from ledger.daemons.loop.config import read_setup
from ledger.daemons.loop.folders import LoopFolder
from ledger.daemons.loop.ticking import Summary
from ledger.errors import LedgerError
from projections.loop_reasons import Reason

AFTER_ERROR_S_MIN = 10.0


def run_daemon(
    folder: LoopFolder,
    tick: Callable[[], Summary],
    stop: Stop,
    *,
    interval_s: float | None = None,
    attempts_max: int | None = None,
    told: Callable[[Summary], None] = lambda _: None,
    failed: Callable[[LedgerError], None] = lambda _: None,
) -> Summary:
    """The summary of the last tick; `told` hears each. Between ticks, skipped ones too, it sleeps `interval_s`, by
    default what loop.json says by then.

    What the first tick raises ends it. After that it outlives an error, such as a full disk or a loop.json that is
    being written: `failed` hears it, and the tick is tried again. The last attempt's error is raised.
    """
    last: Summary | None = None
    pause_s = 0.0
    attempts = 0
    while True:
        attempts += 1
        try:
            last = tick()
            told(last)
            if last.halted or last.reason == Reason.UNTRACKED or stop.is_set() or attempts == attempts_max:
                return last
            pause_s = read_setup(folder).config.schedule.interval_seconds if interval_s is None else interval_s
        except LedgerError as error:
            if last is None or attempts == attempts_max:
                raise
            failed(error)
            pause_s = max(pause_s, AFTER_ERROR_S_MIN)
        if stop.wait(pause_s):
            return last
