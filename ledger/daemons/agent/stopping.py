"""How a daemon is asked to end: by a signal, and at a place where it is safe."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

# A signal that comes when a wait has just been entered is heeded when the wait is over: so none is longer than this
HEEDED_S = 0.25
ASK_TO_END = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


class Stop:
    """Asks everything that looks at it to end. Unlike `threading.Event`, a signal handler may set it. `signal` is the
    one that asked first."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)

    def ask(self, number: int = signal.SIGTERM) -> None:
        if self.signal is None:
            self.signal = signal.Signals(number)
        with suppress(OSError):  # full of what was asked before
            os.write(self._writing, b"!")

    def is_set(self) -> bool:
        return self.signal is not None

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits until it is asked, for at most `timeout_s`: True if it is."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self.is_set():
            left_s = HEEDED_S if deadline is None else deadline - time.monotonic()
            if left_s <= 0:
                return False
            select.select([self._reading], [], [], min(left_s, HEEDED_S))
        return True

    def close(self) -> None:
        os.close(self._reading)
        os.close(self._writing)


@contextmanager
def stopping_on_signals(signals: Sequence[signal.Signals] = ASK_TO_END) -> Iterator[Stop]:
    """While it lasts, signals set the Stop that it gives, and do nothing else. Only for the main thread."""
    stop = Stop()

    def ask(number: int, _: FrameType | None) -> None:
        stop.ask(number)

    before = {number: signal.signal(number, ask) for number in signals}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        stop.close()
