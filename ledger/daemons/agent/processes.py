"""A program under a guard: started, signalled, ended with everything that it started, and waited for."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Protocol

import msgspec

from ledger.daemons.agent import guard
from ledger.daemons.agent.leftovers import Mark, end_marked
from ledger.daemons.agent.stopping import HEEDED_S

GRACE_S = 5.0  # between asking to end, and ending
NOT_FOUND, NOT_STARTED = 127, 126  # exit codes, as a shell has them

_POLL_S = 0.05
_GUARD_S_MAX = 20.0  # between what the guard is to do and what it does, on a slow machine


class Stopping(Protocol):
    """What says that a program is to end; a `threading.Event` does."""

    def is_set(self) -> bool: ...


class Outcome(msgspec.Struct, frozen=True):
    """How a program ended. `exit_code` is as a shell has it: 128 and the signal's number where a signal ended it.
    `trouble` says why it could not be started. It is `stopped` if it was asked to end while it ran."""

    exit_code: int
    timed_out: bool = False
    stopped: bool = False
    trouble: str = ""


class Process:
    """A program, started once. `stdin` (where it was asked for), `stdout` and `stderr` are our ends of its pipes."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        environment: Mapping[str, str],
        cwd: Path | None = None,
        stdin: int | None = None,
        time_s: float = 0,
        grace_s: float = GRACE_S,
        mark: Mark | None = None,
    ) -> None:
        """Starts the guard. `stdin` is as `subprocess.Popen` takes it; `time_s` limits how long the program may run,
        0 for ever. Raises OSError where not even the guard can be started: the folder is gone, say."""
        self.pid = 0
        self.mark = mark or Mark()
        self._time_s = time_s
        self._grace_s = grace_s
        self._slack_s = 2 * grace_s + _GUARD_S_MAX  # that the guard has to end everything
        self._link, link = socket.socketpair()
        try:
            self._guard = subprocess.Popen(  # noqa: S603 — our own script
                [sys.executable, "-I", "-S", guard.__file__, str(link.fileno()), str(time_s), str(grace_s)],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd,
                env=self.mark.put_into(environment),
                start_new_session=True,
                pass_fds=[link.fileno()],
            )
        except BaseException:
            self._link.close()
            raise
        finally:
            link.close()
        data = b"\0".join(os.fsencode(word) for word in words)
        with suppress(OSError):  # a guard that has died is found out in `wait`
            self._link.sendall(len(data).to_bytes(4, "big") + data)

    @property
    def guard_pid(self) -> int:
        return self._guard.pid

    @property
    def stdin(self) -> IO[bytes] | None:
        return self._guard.stdin

    @property
    def outputs(self) -> tuple[IO[bytes], IO[bytes]]:
        assert self._guard.stdout is not None and self._guard.stderr is not None  # noqa: S101, PT018 — as asked for
        return self._guard.stdout, self._guard.stderr

    def signal(self, number: int) -> None:
        """Passes a signal on to the program and the children in its group. Signal handlers may call it."""
        with suppress(OSError):
            self._link.send(bytes([number]))

    def end(self) -> None:
        """Asks the program to end, and ends it and its children after the grace."""
        self.signal(guard.END)

    def wait(self, stop: Stopping | None = None, on_start: Callable[[int], None] | None = None) -> Outcome:
        """Waits until the program and all that it started have ended; `stop` ends them. `on_start` is told its pid,
        if it could be started. Whatever is raised meanwhile, nothing is left running."""
        try:
            return self._wait(stop, on_start)
        finally:
            self._link.close()  # which ends it, should it still run
            self._guard.wait()

    def _wait(self, stop: Stopping | None, on_start: Callable[[int], None] | None) -> Outcome:
        exit_code: int | None = None
        timed_out, stopped, trouble = False, False, ""
        overdue_at = time.monotonic() + self._time_s + self._slack_s if self._time_s else None
        for line in self._lines(_POLL_S if stop is not None or overdue_at is not None else HEEDED_S):
            if line is None:
                if stop is not None and stop.is_set() and not stopped and exit_code is None:
                    stopped = True
                    overdue_at = time.monotonic() + self._slack_s
                    self.end()
                if overdue_at is not None and time.monotonic() >= overdue_at:
                    timed_out = timed_out or not stopped
                    self._guard.kill()  # it must have been stopped, by the program perhaps
                continue
            word, _, number = line.partition(" ")
            if word == "started":
                self.pid = int(number)
                if on_start is not None:
                    on_start(self.pid)
            elif word == "failed":
                trouble = os.strerror(int(number))
                missing = isinstance(OSError(int(number), trouble), FileNotFoundError)
                exit_code = NOT_FOUND if missing else NOT_STARTED
            elif word == "timed-out":
                timed_out = True
            elif word == "ended":
                exit_code = int(number) if int(number) >= 0 else 128 - int(number)
        if exit_code is None:  # the guard was killed; with it the program, but not what the program had started
            end_marked(self.mark, self._grace_s)
            exit_code = 128 + signal.SIGKILL
            trouble = "" if self.pid else "its guard ended before it could start it"
        return Outcome(exit_code, timed_out, stopped, trouble)

    def _lines(self, pause_s: float) -> Iterator[str | None]:
        """What the guard says until it leaves, and None whenever it has said nothing for `pause_s`."""
        rest = b""
        while True:
            yield None
            if not select.select([self._link], [], [], pause_s)[0]:
                continue
            try:
                data = self._link.recv(4096)
            except ConnectionError:
                return
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            yield from (line.decode() for line in lines)
