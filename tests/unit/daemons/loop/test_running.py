from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from ledger.daemons.agent import Stop
from ledger.daemons.loop.running import AFTER_ERROR_S_MIN, run_daemon
from ledger.daemons.loop.ticking import Summary
from ledger.errors import LedgerError, StorageError
from tests.unit.daemons.loop.bench import Bench

SKIPPED = Summary("l", True, False, "locked", 0, None)
DONE = Summary("l", False, False, None, 1, {"pass": True, "score": None, "reasons": []})
HALTED = Summary("l", False, True, "verifier_failed", 1, None)
UNTRACKED = Summary("l", True, False, "untracked", 0, None)


class Sleeper(Stop):
    """Notes how long it was asked to wait; the `stop_at`-th time it is told to end."""

    def __init__(self, stop_at: int = 0) -> None:
        super().__init__()
        self.pauses: list[float | None] = []
        self._stop_at = stop_at

    def wait(self, timeout_s: float | None = None) -> bool:
        self.pauses.append(timeout_s)
        if len(self.pauses) == self._stop_at:
            self.ask()
        return self.is_set()


def ticks(*outcomes: Summary | LedgerError) -> Callable[[], Summary]:
    left = iter(outcomes)

    def tick() -> Summary:
        outcome = next(left)
        if isinstance(outcome, LedgerError):
            raise outcome
        return outcome

    return tick


@pytest.fixture
def stop() -> Iterator[Sleeper]:
    stop = Sleeper()
    yield stop
    stop.close()


def test_it_ticks_through_skips_until_a_halt_and_sleeps_between(bench: Bench, stop: Sleeper) -> None:
    told: list[Summary] = []
    tick = ticks(SKIPPED, DONE, SKIPPED, HALTED)
    assert run_daemon(bench.folder, tick, stop, interval_s=7, told=told.append) == HALTED
    assert told == [SKIPPED, DONE, SKIPPED, HALTED]
    assert stop.pauses == [7, 7, 7]


def test_skips_count_as_attempts(bench: Bench, stop: Sleeper) -> None:
    assert run_daemon(bench.folder, ticks(SKIPPED, SKIPPED, DONE), stop, interval_s=0, attempts_max=2) == SKIPPED


def test_the_interval_is_the_files_unless_it_is_given_and_is_read_each_time(bench: Bench, stop: Sleeper) -> None:
    bench.configure(schedule={"interval_seconds": 11})

    def tick() -> Summary:
        if stop.pauses:
            bench.configure(schedule={"interval_seconds": 0.5})
        return SKIPPED

    run_daemon(bench.folder, tick, stop, attempts_max=3)
    assert stop.pauses == [11, 0.5]


def test_an_error_ends_it_at_its_first_tick_and_later_is_told_and_outlived(bench: Bench, stop: Sleeper) -> None:
    full, told = StorageError("the disk is full"), list[LedgerError]()
    with pytest.raises(StorageError):
        run_daemon(bench.folder, ticks(full, DONE), stop)
    done = run_daemon(bench.folder, ticks(DONE, full, full, HALTED), stop, interval_s=0, failed=told.append)
    assert (done, told) == (HALTED, [full, full])
    assert stop.pauses == [0, AFTER_ERROR_S_MIN, AFTER_ERROR_S_MIN]


def test_the_error_of_the_last_attempt_is_its_own(bench: Bench, stop: Sleeper) -> None:
    with pytest.raises(StorageError):
        run_daemon(bench.folder, ticks(DONE, StorageError("full")), stop, interval_s=0, attempts_max=2)


def test_a_loop_json_that_is_broken_between_ticks_is_waited_for(bench: Bench, stop: Sleeper) -> None:
    def tick() -> Summary:
        bench.folder.config.write_text("{")
        return HALTED if stop.pauses else DONE

    told: list[LedgerError] = []
    assert run_daemon(bench.folder, tick, stop, failed=told.append) == HALTED
    assert [error.code for error in told] == ["invalid_loop"]


def test_a_loop_that_is_gone_ends_it(bench: Bench, stop: Sleeper) -> None:
    assert run_daemon(bench.folder, ticks(UNTRACKED), stop) == UNTRACKED


def test_a_signal_ends_it_while_it_sleeps_and_after_a_tick(bench: Bench) -> None:
    sleeping = Sleeper(stop_at=1)
    assert run_daemon(bench.folder, ticks(DONE), sleeping) == DONE
    assert run_daemon(bench.folder, ticks(SKIPPED), sleeping) == SKIPPED
    sleeping.close()
