"""Runs a program to its end: git, a hook, a judge. No shell, a time limit, bounded output, nothing left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

from ledger.daemons.agent.processes import GRACE_S, NOT_FOUND, Process, Stopping
from ledger.errors import LedgerError

OUTPUT_BYTES_MAX = 4 * 2**20
_PIECE_BYTES = 65_536
_PIPES_S = 5.0  # that a pipe may stay open behind a program, in the hands of something that got away
_SECRET_VARIABLES = frozenset(
    f"LEDGERD_{name}" for name in ("TOKEN", "OWNER_TOKEN", "READER_TOKEN", "TOKEN_FILE", "STORE")
)


class Stopped(LedgerError):
    """The sweep was asked to end while something ran."""

    code = "stopped"
    hint = "Nothing is lost: the next run goes on from there."


class Ran(msgspec.Struct, frozen=True):
    """How a program ended: `exit_code` as a shell has it, `truncated` where it wrote more than was kept. `trouble` is
    why it could not be started."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    timed_out: bool = False
    truncated: bool = False
    trouble: str = ""

    @property
    def is_missing(self) -> bool:
        return self.exit_code == NOT_FOUND and bool(self.trouble)


def run(
    words: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    time_s: float,
    input: bytes = b"",
    output_bytes_max: int = OUTPUT_BYTES_MAX,
    stop: Stopping | None = None,
) -> Ran:
    """Runs `words` with `input` on standard input. Raises Stopped where `stop` ended it."""
    try:
        process = Process(words, environment=environment, cwd=cwd, stdin=subprocess.PIPE, time_s=time_s)
    except OSError as error:
        return _not_started(words, error)
    stdin, (stdout, stderr) = process.stdin, process.outputs
    assert stdin is not None  # noqa: S101 — as asked for
    threads = _Threads(stdin, input, stdout, stderr, output_bytes_max)
    outcome = process.wait(stop)
    threads.join()
    if stop is not None and stop.is_set():
        raise Stopped(f"asked to end while {Path(words[0]).name} ran")
    return threads.ran(outcome.exit_code, outcome.timed_out, outcome.trouble)


def run_to_its_end(
    words: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    time_s: float,
    output_bytes_max: int = OUTPUT_BYTES_MAX,
) -> Ran:
    """Runs a short program that must not be torn from its work, such as git: it goes on where we are killed. It has
    no terminal and no input. What it leaves running in its group is ended."""
    try:
        process = subprocess.Popen(  # noqa: S603 — the words are ours
            words,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        return _not_started(words, error)
    assert process.stdout is not None and process.stderr is not None  # noqa: S101, PT018 — as asked for
    threads = _Threads(None, b"", process.stdout, process.stderr, output_bytes_max)
    timed_out = False
    try:
        process.wait(time_s)
    except subprocess.TimeoutExpired:
        timed_out = True
        with suppress(ProcessLookupError, PermissionError, subprocess.TimeoutExpired):
            os.killpg(process.pid, signal.SIGTERM)  # on which git takes its locks away
            process.wait(GRACE_S)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    code = process.wait()
    threads.join()
    return threads.ran(code if code >= 0 else 128 - code, timed_out, "")


def _not_started(words: Sequence[str], error: OSError) -> Ran:
    return Ran(NOT_FOUND, b"", b"", trouble=f"{error.filename or words[0]}: {error.strerror}")


def outside_environment() -> dict[str, str]:
    """Our environment without what opens a ledger."""
    return {name: value for name, value in os.environ.items() if name not in _SECRET_VARIABLES}


class _Kept:
    """The first bytes of a pipe; the rest is read and dropped, so that nobody waits."""

    def __init__(self, pipe: IO[bytes], bytes_max: int) -> None:
        self.data = bytearray()
        self.truncated = False
        self._pipe = pipe
        self._bytes_max = bytes_max

    def read(self) -> None:
        with contextlib.closing(self._pipe):
            while piece := os.read(self._pipe.fileno(), _PIECE_BYTES):
                room = self._bytes_max - len(self.data)
                self.data += piece[:room]
                self.truncated |= len(piece) > room


class _Threads:
    """What a program is given and what it says, each seen to by a thread."""

    def __init__(
        self, stdin: IO[bytes] | None, input: bytes, stdout: IO[bytes], stderr: IO[bytes], bytes_max: int
    ) -> None:
        self._kept = (_Kept(stdout, bytes_max), _Kept(stderr, bytes_max))
        self._threads = [threading.Thread(target=one.read, daemon=True) for one in self._kept]
        if stdin is not None:
            self._threads.append(threading.Thread(target=_give, args=(stdin, input), daemon=True))
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(_PIPES_S)

    def ran(self, exit_code: int, timed_out: bool, trouble: str) -> Ran:
        stdout, stderr = self._kept
        truncated = stdout.truncated or stderr.truncated
        return Ran(exit_code, bytes(stdout.data), bytes(stderr.data), timed_out, truncated, trouble)


def _give(pipe: IO[bytes], data: bytes) -> None:
    with suppress(OSError), contextlib.closing(pipe):  # it need not read
        pipe.write(data)
