"""Stands between a runner and the program that it started, so that nothing of the program outlives the runner.

A script of the standard library alone, since it is started anew for every program: `guard.py LINK TIME_S GRACE_S`,
where LINK is its end of a socket pair and 0 stands for no time limit. What it hears: once, the length of the
program's words (4 bytes) and the words with a NUL between them; then bytes, each a signal to pass on to the program's
group, or END. What it says, a line each: `started PID`, or `failed ERRNO`; `timed-out`; `ended STATUS`, as
`os.waitstatus_to_exitcode` has it. It leaves when no process is left.

The program is ended by the time limit, by END, and when the runner has gone, since then the link is closed: SIGTERM,
and SIGKILL after GRACE_S. What the program leaves behind when it ends is ended in the same way. Orphans become the
guard's children (PR_SET_CHILD_SUBREAPER), even those that have left the program's group, so that all are found.
If the guard itself is killed, the system kills the program (PR_SET_PDEATHSIG). Elsewhere than on Linux only the
program's group is seen to.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress

END = 0  # on the link: end the program

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_POLL_S = 0.02
_IS_LINUX = sys.platform == "linux"


def main(link_number: int, time_s: float, grace_s: float) -> None:
    link = socket.socket(fileno=link_number)
    link.set_inheritable(False)
    words = _words(link)
    Guard(link, time_s, grace_s).run(words)


class Guard:
    def __init__(self, link: socket.socket, time_s: float, grace_s: float) -> None:
        self._link = link
        self._grace_s = grace_s
        self._limit_at = time.monotonic() + time_s if time_s else None
        self._kill_at: float | None = None
        self._program = 0
        self._has_ended = False
        self._has_runner = True
        self._adopts = False
        self._wake, wake = socket.socketpair()
        for end in (self._wake, wake):
            end.setblocking(False)
        self._woken_by = wake
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            if number == signal.SIGCHLD or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, _heard)  # a handler, since what is ignored the program would ignore too

    def run(self, words: list[bytes]) -> None:
        self._adopts = _IS_LINUX and _prctl(_PR_SET_CHILD_SUBREAPER, 1) == 0
        self._program, error = _started(words)
        _let_go_of_standard_streams()
        if error:
            self._say(f"failed {error}")
            return
        self._say(f"started {self._program}")
        while self._reap():
            self._keep_time()
            self._hear()

    def _reap(self) -> bool:
        """Takes note of what has ended. False if nothing is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return not self._adopts and _is_group(self._program)
            if not pid:
                return True
            if pid == self._program:
                self._has_ended = True
                self._say(f"ended {os.waitstatus_to_exitcode(status)}")
                self._ask_to_end()

    def _keep_time(self) -> None:
        now = time.monotonic()
        if self._limit_at is not None and now >= self._limit_at and not self._has_ended:
            self._limit_at = None
            self._say("timed-out")
            self._ask_to_end()
        if self._kill_at is not None and now >= self._kill_at:
            self._signal_all(signal.SIGKILL)

    def _hear(self) -> None:
        """Waits until something happens, and does what the runner asks for."""
        links = [self._wake, self._link] if self._has_runner else [self._wake]
        heard, _, _ = select.select(links, [], [], self._pause_s())
        if self._wake in heard and signal.SIGTERM in self._wake.recv(4096):
            self._ask_to_end()
        if self._link in heard:
            orders = _received(self._link, 4096)
            for number in orders:
                if number == END:
                    self._ask_to_end()
                elif not self._has_ended:
                    with suppress(OSError, ValueError):
                        os.killpg(self._program, number)
            if not orders:
                self._has_runner = False
                self._ask_to_end()

    def _pause_s(self) -> float | None:
        now = time.monotonic()
        if self._kill_at is not None:
            return max(self._kill_at - now, _POLL_S) if self._adopts else _POLL_S
        if self._limit_at is not None and not self._has_ended:
            return max(self._limit_at - now, 0)
        return None

    def _ask_to_end(self) -> None:
        if self._kill_at is None or self._has_ended:
            self._signal_all(signal.SIGTERM)
            self._signal_all(signal.SIGCONT)  # what is stopped hears nothing
        if self._kill_at is None:
            self._kill_at = time.monotonic() + self._grace_s

    def _signal_all(self, number: int) -> None:
        """To the group; where the program has ended, or must end now, to what has left the group as well."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._program, number)
        if _IS_LINUX and (self._has_ended or number == signal.SIGKILL):
            for pid in _descendants(os.getpid()):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)

    def _say(self, line: str) -> None:
        with suppress(OSError):  # the runner has gone
            self._link.sendall(line.encode() + b"\n")


def _started(words: list[bytes]) -> tuple[int, int]:
    """Starts the program: its pid, and 0 or the number of the error that kept it from starting."""
    reading, writing = os.pipe()  # neither is inherited, so that it closes when the program is there
    guard = os.getpid()
    pid = os.fork()
    if not pid:
        try:
            os.setsid()
            for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
                signal.signal(number, signal.SIG_DFL)
            if _IS_LINUX:
                _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
                if os.getppid() != guard:
                    os._exit(1)
            os.execvp(words[0], words)  # noqa: S606 — running it is what the guard is for
        except OSError as error:
            os.write(writing, str(error.errno).encode())
        finally:
            os._exit(127)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        error_number = int(pipe.read() or 0)
    if error_number:
        os.waitpid(pid, 0)
    return pid, error_number


def _let_go_of_standard_streams() -> None:
    """They are the program's: they are to close when it closes them."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)


def _descendants(ancestor: int) -> Iterator[int]:
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
                parents.setdefault(parent, []).append(int(name))
    left = [ancestor]
    while left:
        children = parents.get(left.pop(), [])
        yield from children
        left += children


def _is_group(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _words(link: socket.socket) -> list[bytes]:
    size = int.from_bytes(_exactly(link, 4), "big")
    return _exactly(link, size).split(b"\0")


def _exactly(link: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = _received(link, size - len(data))
        if not more:
            sys.exit(0)  # the runner has gone before the program was there
        data += more
    return data


def _received(link: socket.socket, size: int) -> bytes:
    try:
        return link.recv(size)
    except ConnectionError:
        return b""


def _prctl(option: int, value: int) -> int:
    return int(ctypes.CDLL(None).prctl(option, value, 0, 0, 0))


def _heard(_number: int, _frame: object) -> None:
    """What came is read from the wakeup file."""


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
