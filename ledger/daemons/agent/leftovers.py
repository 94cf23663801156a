"""Finds and ends what a runner left behind that was killed together with its guard.

Every program is started with a mark in its environment, which all that it starts inherits, and is noted in a file
beside its prompt while it runs. A process is taken for a leftover if it carries the mark of a note whose runner is
gone, or if it has both the number and the start time of a process that the note names, in the same boot. So a number
that the system has given to another process since is never signalled, and neither is anything of a runner that lives.

It needs /proc; where there is none, nothing is found.
"""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from ledger.daemons.agent.files import read_regular, write_anew

MARKS = "LEDGERD_TURNS"  # the marks of the programs inside of which a process runs, the outermost first
SUFFIX = ".running"

_POLL_S = 0.05
_NOTE_BYTES_MAX = 4096
_PROC = Path("/proc")


class Mark:
    """What tells a program's processes from all others."""

    def __init__(self, name: str = "") -> None:
        self.name = name or uuid.uuid4().hex

    def put_into(self, environment: Mapping[str, str]) -> dict[str, str]:
        return {**environment, MARKS: ":".join(filter(None, [environment.get(MARKS), self.name]))}


class Life(msgspec.Struct, frozen=True):
    """A process, told apart from those that have its number after it. `start` is in the system's ticks since boot."""

    pid: int
    start: int


class _Note(msgspec.Struct, frozen=True):
    mark: str
    boot: str
    runner: Life
    processes: list[Life] = []


class Note:
    """The file that says what runs, as long as it does: `PROMPT.running`."""

    def __init__(self, prompt_path: Path, mark: Mark) -> None:
        self._path = prompt_path.with_name(prompt_path.name + SUFFIX)
        self._mark = mark

    def write(self, *pids: int) -> None:
        """Before the start without numbers, and again with them. Raises OSError."""
        lives = [life for life in map(_life, (os.getpid(), *pids)) if life is not None]
        if lives:
            write_anew(self._path, msgspec.json.encode(_Note(self._mark.name, _boot(), lives[0], lives[1:])))

    def remove(self) -> None:
        with suppress(OSError):
            self._path.unlink()


def end_leftovers(folder: Path, *, grace_s: float = 5.0) -> list[int]:
    """Ends what earlier runners left behind of the programs whose prompts lie in `folder`: asks first, and waits for
    `grace_s`. Gives the numbers of the processes that were found."""
    found: list[int] = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        note = _read(path)
        if note is not None and note.boot == _boot():
            if _is_alive(note.runner):
                continue
            found += _end(note.mark, note.processes, grace_s)
        with suppress(OSError):
            path.unlink()
    return found


def end_marked(mark: Mark, grace_s: float) -> list[int]:
    """Ends all processes that carry the mark."""
    return _end(mark.name, [], grace_s)


def _end(mark: str, processes: list[Life], grace_s: float) -> list[int]:
    found: list[int] = []
    number, kill_at = signal.SIGTERM, time.monotonic() + grace_s
    while living := [life for life in (*processes, *_marked(mark)) if _is_alive(life)]:
        if time.monotonic() >= kill_at:
            number = signal.SIGKILL
        for life in living:
            if life.pid not in found or number == signal.SIGKILL:
                _signal(life, number)
        found += {life.pid for life in living}.difference(found)
        time.sleep(_POLL_S)
    return found


def _signal(life: Life, number: int) -> None:
    """Signals the process if it is still the same one: a handle on it keeps its number from being given away."""
    with suppress(OSError):
        handle = os.pidfd_open(life.pid)
        try:
            if _is_alive(life):
                signal.pidfd_send_signal(handle, number)
                signal.pidfd_send_signal(handle, signal.SIGCONT)  # what is stopped hears nothing
        finally:
            os.close(handle)


def _marked(mark: str) -> Iterator[Life]:
    """All processes that carry the mark, but for us and those in which we run."""
    spared = set(_ancestors(os.getpid()))
    wanted = mark.encode()
    for path in _PROC.glob("[0-9]*/environ"):
        with suppress(OSError):
            values = (part.partition(b"=") for part in path.read_bytes().split(b"\0"))
            carries = any(name == MARKS.encode() and wanted in value.split(b":") for name, _, value in values)
            if carries and (life := _life(int(path.parent.name))) and life.pid not in spared:
                yield life


def _ancestors(pid: int) -> Iterator[int]:
    while pid:
        yield pid
        pid = int((_stat(pid) or ["", "0"])[1])


def _life(pid: int) -> Life | None:
    fields = _stat(pid)
    return None if fields is None else Life(pid, int(fields[19]))


def _is_alive(life: Life) -> bool:
    """True if that process runs; one that only waits to be reaped does not."""
    fields = _stat(life.pid)
    return fields is not None and fields[0] not in "ZX" and int(fields[19]) == life.start


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the third on: state, parent, …; the 20th of them is when it started."""
    try:
        return (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None


def _boot() -> str:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _read(path: Path) -> _Note | None:
    try:
        return msgspec.json.decode(read_regular(path, _NOTE_BYTES_MAX), type=_Note)
    except (OSError, ValueError):  # msgspec's errors are ValueErrors
        return None
