"""A process of the bench: started by module name, spoken to by lines, its time and memory read from outside."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

_TOP = Path(__file__).resolve().parents[2]  # where `ledger` and `tests` are found
_STOP_S_MAX = 20.0
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class BenchFailed(Exception):
    """A process of the bench broke down, or what was counted does not add up: its times mean nothing."""


class Child:
    """`python -m MODULE ARGS…`, ended when the block is left."""

    def __init__(self, module: str, *args: str, env: Mapping[str, str] | None = None) -> None:
        self._module = module
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            cwd=_TOP,
            env={**os.environ, **(env or {})},
        )

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._process.terminate()
        try:
            self._process.wait(_STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def say(self, line: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + b"\n")

    def hear(self, timeout_s: float) -> bytes:
        """The next line of its output. Raises BenchFailed where there is none in time."""
        out = self._process.stdout
        assert out is not None
        ready, _, _ = select.select([out], [], [], timeout_s)
        if not ready:
            raise BenchFailed(f"{self._module} said nothing for {timeout_s:g} s")
        line = bytes(out.readline())
        if not line:
            raise BenchFailed(f"{self._module} ended with {self._process.wait(_STOP_S_MAX)}")
        return line.rstrip(b"\n")

    def cpu_s(self) -> float:
        """Seconds of processor time, in user and system mode, of all its threads (proc(5), /proc/PID/stat)."""
        stat = self._proc("stat")
        fields = stat[stat.rindex(")") + 2 :].split()  # from field 3 on: the name before may hold blanks
        return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S

    def peak_mib(self) -> float:
        """The most memory that was resident at once since its start."""
        [line] = [line for line in self._proc("status").splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) / 1024

    def _proc(self, name: str) -> str:
        return Path(f"/proc/{self._process.pid}/{name}").read_text()
