"""A signal is heeded even if it comes when a wait has just been entered: the system then wakes nobody."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ledger.daemons.agent import Stop, stopping_on_signals
from ledger.daemons.agent.processes import Process


@contextmanager
def unheard_signal() -> Iterator[Callable[[], None]]:
    """Gives a function that lets SIGUSR1 come in another thread than the main one, whose system call goes on."""
    threads = []

    def send() -> None:
        threads.append(
            threading.Thread(target=lambda: signal.pthread_kill(threading.get_ident(), signal.SIGUSR1), daemon=True)
        )
        threads[-1].start()

    yield send
    for thread in threads:
        thread.join()


def test_it_ends_a_wait_for_a_program() -> None:
    process = Process(["sleep", "60"], environment=os.environ, grace_s=0.1)
    before = signal.signal(signal.SIGUSR1, lambda *_: process.end())
    try:
        with unheard_signal() as send:
            timer = threading.Timer(0.2, send)  # by then the wait is under way
            timer.start()
            outcome = process.wait()
            timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
        for pipe in process.outputs:
            pipe.close()
    assert outcome.exit_code == 128 + signal.SIGTERM


def test_it_ends_a_pause_between_two_ticks() -> None:
    with unheard_signal() as send, stopping_on_signals([signal.SIGUSR1]) as stop:
        timer = threading.Timer(0.1, send)
        timer.start()
        assert stop.wait(60)
        timer.join()
    assert stop.signal == signal.SIGUSR1


def test_a_pause_that_nobody_ends_is_over_in_time() -> None:
    assert not Stop().wait(0.01)
