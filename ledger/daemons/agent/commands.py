"""A command that somebody runs as a session (`ledgerd run`, `ledgerd worker`): its output passes through, its lines
are events, and the signals that reach us go to it."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from subprocess import PIPE
from types import FrameType
from typing import IO

from ledger.client.redaction import Redactor
from ledger.client.saddle import Session
from ledger.daemons.agent.outputs import Keeper, Output, PlainReading, event
from ledger.daemons.agent.processes import GRACE_S, NOT_FOUND, NOT_STARTED, Outcome, Process
from ledger.daemons.agent.results import ACTOR, Ended
from ledger.events import kinds

PASSED_ON = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)

_ASK_TO_END = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM})
_STREAMS = ("stdout", "stderr")


class Agent:
    """A command, run once, as a process group of its own. `input` is what it reads; by default our standard input.
    What is kept of its output is without secrets where there is a `redactor`; what passes through is as it came."""

    def __init__(
        self,
        session: Session,
        words: Sequence[str],
        *,
        environment: Mapping[str, str],
        input: bytes | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        self._session = session
        self._words = list(words)
        self._environment = environment
        self._input = input
        self._redactor = redactor
        self._process: Process | None = None
        self._stopped_by: signal.Signals | None = None

    def signal(self, number: int) -> None:
        """Passes a signal on to the command and its children."""
        if number in _ASK_TO_END:
            self._stopped_by = signal.Signals(number)
        if self._process is not None:
            self._process.signal(number)

    def run(self, title: str) -> Ended:
        """Runs the command to its end; nothing that it started is left. `title` is what is shown as its activity."""
        keepers = [Keeper(self._session, ACTOR, name, redactor=self._redactor) for name in _STREAMS]
        readings = [PlainReading(ACTOR, name) for name in _STREAMS]
        keepers[0].keep([event(kinds.TOOL_CALL, ACTOR, {"tool": "run", "args": {"command": title}})])
        outcome = self._run(
            [
                Output(keeper, reading, passed_on_to=number)
                for number, (keeper, reading) in enumerate(zip(keepers, readings, strict=True), 1)
            ]
        )
        last_words = outcome.trouble or readings[1].last_words or readings[0].last_words
        keepers[0].keep([event(kinds.TOOL_RESULT, ACTOR, {"tool": "run", "exit_code": outcome.exit_code})])
        keepers[1].keep([])
        return Ended(outcome.exit_code, last_words, self._stopped_by)

    def _run(self, outputs: Sequence[Output]) -> Outcome:
        stdin = None if self._input is None else PIPE
        try:
            process = self._process = Process(self._words, environment=self._environment, stdin=stdin)
        except OSError as error:
            code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_STARTED
            return Outcome(code, trouble=error.strerror or str(error))
        if self._stopped_by is not None:  # it came while the command was being started
            self.signal(self._stopped_by)
        for output, pipe in zip(outputs, process.outputs, strict=True):
            output.read(pipe)
        feed(process, self._input)
        outcome = process.wait()
        self._process = None
        for output in outputs:
            output.finish(GRACE_S)
        return outcome


def feed(process: Process, data: bytes | None) -> None:
    """Gives the program what it reads, from a thread of its own."""
    if process.stdin is not None and data is not None:
        threading.Thread(target=_write, args=(process.stdin, data), daemon=True).start()


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


def _write(pipe: IO[bytes], data: bytes) -> None:
    with suppress(OSError), contextlib.closing(pipe):  # the command need not read it
        pipe.write(data)
