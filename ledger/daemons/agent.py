"""Runs a command as a session: its output lines are events, its exit code the result. Agents are started here only.

The command never waits for the ledger: one thread passes on what it writes, another keeps it in the outbox in
batches. Where the outbox fails, or is slower than the command for long, the command goes on, and how much was lost is
told when the outbox works again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import IO

import msgspec

from ledger.client.outbox import NEXT_SEQ
from ledger.client.saddle import Session
from ledger.errors import StorageError
from ledger.events import kinds
from ledger.events.decode import new_event
from ledger.events.model import NewEvent

OUTPUT_LOST = "output.lost"  # {lines}: what could not be kept before this
ACTOR = "harness"
LINE_BYTES_MAX = 64 * 1024  # a longer line becomes several events
GRACE_S = 5.0  # between asking leftover children to end, and ending them

PASSED_ON = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
_ASK_TO_END = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM})
_READ_BYTES = 64 * 1024
_PIPE_BYTES = 2**20
_BATCHES_WAITING_MAX = 256  # of up to _READ_BYTES each, while the disk is slow
_POLL_S = 0.02
_SUMMARY_CHARS_MAX = 500


class Ended(msgspec.Struct, frozen=True):
    """How a command ended. `exit_code` is as a shell has it: 128 and the signal's number where a signal ended it, 127
    where it could not be found, 126 where it could not be started. `last_words` is the last line that it wrote;
    `stopped_by` the signal that asked it to end, if one did."""

    exit_code: int
    last_words: str
    stopped_by: signal.Signals | None


class Agent:
    """A command, run once, as a process group of its own. `input` is what it reads; by default our standard input."""

    def __init__(
        self, session: Session, words: Sequence[str], *, environment: Mapping[str, str], input: bytes | None = None
    ) -> None:
        self._session = session
        self._words = list(words)
        self._environment = environment
        self._input = input
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped_by: signal.Signals | None = None

    def signal(self, number: int) -> None:
        """Passes a signal on to the command and its children."""
        if number in _ASK_TO_END:
            self._stopped_by = signal.Signals(number)
        if self._process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def run(self, title: str) -> Ended:
        """Runs the command to its end; none of its children is left. `title` is what is shown as its activity."""
        outputs = [_Output(self._session, "stdout", 1), _Output(self._session, "stderr", 2)]
        outputs[0].keep([_event(kinds.TOOL_CALL, {"tool": "run", "args": {"command": title}})])
        try:
            exit_code = self._run(outputs)
        except OSError as error:
            exit_code = 127 if isinstance(error, FileNotFoundError) else 126
            outputs[1].last_words = error.strerror or str(error)
        outputs[0].keep([_event(kinds.TOOL_RESULT, {"tool": "run", "exit_code": exit_code})])
        outputs[1].keep([])
        return Ended(exit_code, outputs[1].last_words or outputs[0].last_words, self._stopped_by)

    def _run(self, outputs: Sequence[_Output]) -> int:
        process = self._process = subprocess.Popen(  # noqa: S603 — running it is what was asked for
            self._words,
            stdin=None if self._input is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self._environment,
            start_new_session=True,
        )
        if self._stopped_by is not None:  # it came while the command was being started
            self.signal(self._stopped_by)
        assert process.stdout is not None and process.stderr is not None  # noqa: S101, PT018 — as asked for
        readers = [
            threading.Thread(target=output.read, args=(pipe,), daemon=True)
            for output, pipe in zip(outputs, (process.stdout, process.stderr), strict=True)
        ]
        if process.stdin is not None and self._input is not None:
            readers.append(threading.Thread(target=_write, args=(process.stdin, self._input), daemon=True))
        for reader in readers:
            reader.start()
        status = process.wait()
        _end_group(process.pid)
        self._process = None
        for reader in readers:
            reader.join(GRACE_S)  # a child that left the group may hold the pipe
        for output in outputs:
            output.finish()
        return status if status >= 0 else 128 - status


class _Output:
    """One output of the command: passed on as it comes, kept line by line by a thread of its own."""

    def __init__(self, session: Session, name: str, passed_on_to: int) -> None:
        self.last_words = ""
        self._session = session
        self._name = name
        self._passed_on_to = passed_on_to
        self._handed: queue.Queue[list[NewEvent] | None] = queue.Queue(_BATCHES_WAITING_MAX)
        self._keeper = threading.Thread(target=self._keep_what_is_handed, daemon=True)
        self._lost = 0
        self._losing = threading.Lock()

    def read(self, pipe: IO[bytes]) -> None:
        with suppress(OSError, AttributeError):  # not every system lets a pipe grow
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._keeper.start()
        rest = b""
        with pipe:
            while data := os.read(pipe.fileno(), _READ_BYTES):
                self._pass_on(data)
                *lines, rest = (rest + data).split(b"\n")
                while len(rest) > LINE_BYTES_MAX:
                    lines.append(rest[:LINE_BYTES_MAX])
                    rest = rest[LINE_BYTES_MAX:]
                self._keep_lines(lines)
        if rest:
            self._keep_lines([rest])

    def finish(self) -> None:
        """Waits until everything that was read is kept, or counted as lost."""
        if self._keeper.ident is not None:
            self._handed.put(None)
            self._keeper.join()

    def keep(self, events: list[NewEvent]) -> None:
        """Keeps events, behind word of what was lost before them; or counts them as lost."""
        with self._losing:
            lines, self._lost = self._lost, 0
        lost = [_event(OUTPUT_LOST, {"stream": self._name, "lines": lines})] if lines else []
        if not lost and not events:
            return
        try:
            self._session.add([*lost, *events])
        except StorageError:
            self._lose(lines + len(events))

    def _keep_what_is_handed(self) -> None:
        while (events := self._handed.get()) is not None:
            self.keep(events)

    def _lose(self, lines: int) -> None:
        with self._losing:
            self._lost += lines

    def _keep_lines(self, lines: list[bytes]) -> None:
        texts = [line.removesuffix(b"\r").decode(errors="replace") for line in lines]
        if not texts:
            return
        self.last_words = next((text for text in reversed(texts) if text.strip()), self.last_words)
        events = [_event(kinds.OUTPUT, {"stream": self._name, "text": text}) for text in texts]
        try:
            self._handed.put_nowait(events)
        except queue.Full:
            self._lose(len(events))

    def _pass_on(self, data: bytes) -> None:
        with suppress(OSError):  # nobody listens any more; the command goes on
            while data:
                data = data[os.write(self._passed_on_to, data) :]


@contextmanager
def passing_signals_on(agent: Agent) -> Iterator[None]:
    """While it lasts, signals that reach this process go to the agent instead. Only for the main thread."""

    def pass_on(number: int, _: FrameType | None) -> None:
        agent.signal(number)

    before = {number: signal.signal(number, pass_on) for number in PASSED_ON}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def environment_of(session: Session, outbox: Path, **more: str | None) -> dict[str, str]:
    """What a command finds its session by: `ledgerd comment` inside of it lands there."""
    ours = {"LEDGERD_SESSION": session.id, "LEDGERD_OUTBOX": str(outbox), **more}
    return {**os.environ, **{name: value for name, value in ours.items() if value is not None}}


def push_result(session: Session, title: str, ended: Ended) -> None:
    """Says how the session ended: 0 is done, a command that was asked to stop is cancelled, any other failed.

    What the command has said itself counts: a result before this one stays, and a command that parked its session
    (waiting, suspended) and then ended well leaves it parked.
    """
    if ended.exit_code == 0 and session.last_state() in (kinds.WAITING, kinds.SUSPENDED):
        return
    name = title if len(title) <= 100 else title[:99] + "…"
    if ended.exit_code == 0:
        session.result(kinds.DONE, f"{name} ended well", actor=ACTOR)
    elif ended.stopped_by is not None:
        session.result(kinds.CANCELLED, f"{name} was stopped by {ended.stopped_by.name}", actor=ACTOR)
    else:
        said = f": {ended.last_words.strip()[:_SUMMARY_CHARS_MAX]}" if ended.last_words.strip() else ""
        session.result(kinds.FAILED, f"{name} {_how(ended.exit_code)}{said}", actor=ACTOR)


def _how(exit_code: int) -> str:
    with suppress(ValueError):
        if exit_code > 128:
            return f"was ended by {signal.Signals(exit_code - 128).name}"
    return f"ended with exit code {exit_code}"


def _event(kind: str, payload: object) -> NewEvent:
    return new_event(NEXT_SEQ, kind, ACTOR, payload, time.time_ns())


def _write(pipe: IO[bytes], data: bytes) -> None:
    with suppress(OSError), contextlib.closing(pipe):  # the command need not read it
        pipe.write(data)


def _end_group(group: int) -> None:
    """Ends what is left of a process group: asks first, and waits for GRACE_S."""
    deadline = time.monotonic() + GRACE_S
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGTERM)
        while time.monotonic() < deadline:
            time.sleep(_POLL_S)
            os.killpg(group, 0)
        os.killpg(group, signal.SIGKILL)
