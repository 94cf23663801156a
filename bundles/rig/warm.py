"""Runs of `ledgerd`, each a process of its own that can be signalled and killed, forked from one that has imported
its modules already: most of what a short run takes is those imports.

`python -m bundles.rig.warm LISTENER` is that process. Each connection to it is one run: it hears what to run, a line
of JSON, and says the run's process id and, once that has ended, its exit code, a line each. It leaves when its
standard input is closed.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

_MODULES = (
    "encodings.idna",
    "httpcore",
    "httpx",
    "ledger.cli.loop",
    "ledger.cli.outbox",
    "ledger.client.redaction.payloads",
    "ledger.client.saddle",
    "ledger.daemons.loop.handling",
    "ledger.daemons.loop.running",
)
_PACKAGES = Path(__file__).resolve().parents[2]


class Run:
    """A command that was started. `out` and `err` are the files that it writes to."""

    def __init__(self, words: Sequence[str], said: socket.socket, out: Path, err: Path) -> None:
        self.words = words
        self.out = out
        self.err = err
        self._said = said
        self._lines = said.makefile("r")
        self.pid = int(self._lines.readline())
        self.exit_code: int | None = None

    def wait(self, time_s: float) -> int | None:
        """Its exit code; None where it has not ended in that time."""
        if self.exit_code is None and select.select([self._said], [], [], time_s)[0]:
            self.exit_code = int(self._lines.readline())
            self._lines.close()
            self._said.close()
        return self.exit_code

    def signal(self, number: signal.Signals) -> None:
        """Nothing where it has ended."""
        if self.wait(0) is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)


class Warm:
    """Starts runs in the folder `cwd`; their output lies in `outputs`. Threads may share it. Has to be closed."""

    def __init__(self, cwd: Path, outputs: Path) -> None:
        self._cwd = cwd
        self._outputs = outputs
        self._runs = iter(range(10**9))
        self._address = str(outputs / "warm.socket")
        outputs.mkdir()
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self._address)
            listener.listen()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bundles.rig.warm", str(listener.fileno())],
                stdin=subprocess.PIPE,
                cwd=_PACKAGES,
                pass_fds=[listener.fileno()],
            )

    def start(self, words: Sequence[str], environment: dict[str, str]) -> Run:
        number = next(self._runs)
        out, err = self._outputs / f"{number}.out", self._outputs / f"{number}.err"
        said = socket.socket(socket.AF_UNIX)
        said.connect(self._address)
        order = {"words": words, "environment": environment, "cwd": str(self._cwd), "out": str(out), "err": str(err)}
        said.sendall(json.dumps(order).encode() + b"\n")
        return Run(words, said, out, err)

    def close(self) -> None:
        self._process.communicate()


def main(listener: socket.socket) -> None:
    for name in _MODULES:
        import_module(name)
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        connection, _ = listener.accept()
        if not os.fork():
            listener.close()
            _see_to(connection)
            return
        connection.close()
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _see_to(connection: socket.socket) -> None:
    """One run, in a process that waits for it."""
    with connection, connection.makefile("r") as lines:
        order = json.loads(lines.readline())
        if pid := os.fork():
            connection.sendall(b"%d\n" % pid)
            _, status = os.waitpid(pid, 0)
            connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
            return
    _become(order)


def _become(order: dict[str, Any]) -> None:
    """The command, as if it had been started by its name."""
    for number, path, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, order["out"], os.O_WRONLY | os.O_CREAT),
        (2, order["err"], os.O_WRONLY | os.O_CREAT),
    ):
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv = ["ledgerd", *order["words"]]
    import_module("ledger.entry").main()


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
