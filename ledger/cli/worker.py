from __future__ import annotations

import signal
import socket
import uuid
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from ledger.cli.outboxes import open_saddle, outbox_option
from ledger.cli.redacting import redact_options, redactor_for
from ledger.cli.terminal import one_line
from ledger.errors import StorageError

if TYPE_CHECKING:
    from ledger.client.api import Api
    from ledger.client.redaction import Redactor
    from ledger.client.saddle import Saddle, Work
    from ledger.daemons.agent import Agent, Ended

WAIT_S = 25.0

T = TypeVar("T")


@click.command("worker")
@click.option("--command", "line", required=True, help="What works on a task; run by /bin/sh.")
@click.option("--agent", help="What the command is, such as claude-code.")
@click.option("--once", is_flag=True, help="End after one task, or when there is none at once.")
@redact_options
@outbox_option
def command(
    line: str, agent: str | None, once: bool, redact: bool, patterns: tuple[str, ...], outbox: Path | None
) -> None:
    """Ask for queued tasks, and run a command for each, one after the other, as `ledgerd run` does.

    The command finds the task as JSON on standard input, and in LEDGERD_TASK_ID, LEDGERD_TASK_TITLE,
    LEDGERD_TASK_BRIEF and LEDGERD_GOAL_ID. A signal goes to the command, if one runs, and ends the worker after it.
    For more at once run more workers; they may share an outbox.

    \b
    Example:
      ledgerd worker --command 'claude -p "$LEDGERD_TASK_BRIEF"'
    """
    redactor = redactor_for(redact, patterns)
    with open_saddle(outbox) as saddle:
        _Worker(saddle, line, agent, redactor).work(once)


class _Worker:
    """No claimed task is left behind: from the claim on, a signal either reaches the command or ends the task."""

    def __init__(self, saddle: Saddle, line: str, agent: str | None, redactor: Redactor | None) -> None:
        from ledger.daemons.agent import Stop

        self._saddle = saddle
        self._line = line
        self._agent = agent
        self._redactor = redactor
        self._running: Agent | None = None
        self._asking = False
        self._stop = Stop()

    def work(self, once: bool) -> None:
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._signalled)
        while not self._stop.is_set():
            work = self._until_it_works(lambda: self._ask(0 if once else WAIT_S))
            if work is not None:
                self._tell(work, self._run(work), once)
            if once:
                return

    def _signalled(self, number: int, _: FrameType | None) -> None:
        self._stop.ask(number)
        if self._running is not None:
            self._running.signal(number)
        elif self._asking:
            raise _Stopped

    def _until_it_works(self, do: Callable[[], T]) -> T | None:
        """Tries again where the server is away or the outbox fails, however long that takes; None once stopped."""
        from ledger.client.api import ApiError
        from ledger.client.retries import AGAIN, backoff_s

        failures = 0
        while True:
            try:
                return do()
            except (ApiError, StorageError) as error:
                retry_after_s = None
                if isinstance(error, ApiError):
                    retry_after_s = error.retry_after_s
                    if error.status is not None and error.status not in AGAIN:
                        raise
                failures += 1
                if failures == 1:
                    click.echo(f"waiting: {one_line(error.detail)}", err=True)
                pause_s = backoff_s(failures, Random()) if retry_after_s is None else retry_after_s  # noqa: S311
                if self._stop.wait(pause_s):
                    return None

    def _ask(self, wait_s: float) -> Work | None:
        """As `Saddle.ask` does it, but a signal cuts the waiting short."""
        from ledger.client.saddle import Work

        outbox, session_id = self._saddle.outbox, self._saddle.outbox.begin_ask(uuid.uuid4().hex)
        try:
            with self._saddle.api(attempts_max=1) as api:
                asked = {"session_id": session_id, "agent": self._agent, "host": socket.gethostname()}
                answer = self._unless_stopped(
                    lambda: None if self._stop.is_set() else api.ask(wait_s=wait_s, **asked)
                )
                if self._stop.is_set() and answer is None:
                    answer = self._given_meanwhile(api, session_id)
        except BaseException:
            outbox.end_ask(session_id, answered=False)
            raise
        if answer is None:
            outbox.end_ask(session_id, answered=not self._stop.is_set())
            return None
        outbox.adopt(session_id, str(answer["task"]["id"]))
        return Work(answer["task"], self._saddle.session(session_id))

    def _given_meanwhile(self, api: Api, session_id: str) -> dict[str, Any] | None:
        """What the server gave us just when the waiting was cut short: then the session is open."""
        from ledger.client.api import ApiError

        def look() -> dict[str, Any] | None:
            api.push(session_id, [])
            return api.ask(wait_s=0, session_id=session_id)

        try:
            return self._unless_stopped(look)
        except ApiError:
            return None

    def _unless_stopped(self, do: Callable[[], T]) -> T | None:
        """None where a signal comes while it is being done."""
        try:
            self._asking = True
            try:
                return do()
            finally:
                self._asking = False
        except _Stopped:
            return None

    def _run(self, work: Work) -> Ended:
        from ledger.daemons.agent import Agent, Ended, environment_of

        task = work.task
        click.echo(f"task {one_line(task['id'])}: {one_line(task['title'])}", err=True)
        environment = environment_of(
            work.session,
            self._saddle.outbox.path,
            LEDGERD_TASK_ID=task["id"],
            LEDGERD_TASK_TITLE=task["title"],
            LEDGERD_TASK_BRIEF=task["brief"],
            LEDGERD_GOAL_ID=task["goal_id"],
        )
        words = ["/bin/sh", "-c", self._line]
        self._running = Agent(
            work.session, words, environment=environment, input=msgspec.json.encode(task), redactor=self._redactor
        )
        try:
            if self._stop.signal is not None:  # it came before there was a command for it to go to
                return Ended(128 + self._stop.signal, "", self._stop.signal)
            return self._running.run(self._line)
        finally:
            self._running = None

    def _tell(self, work: Work, ended: Ended, once: bool) -> None:
        """Says how it ended; where the outbox fails, when it works again."""
        from ledger.daemons.agent import push_result

        def push() -> bool:
            push_result(work.session, self._line, ended, self._redactor)
            return True

        if once:
            push()
        elif not self._until_it_works(push):
            click.echo(f"how task {one_line(work.task['id'])} ended is not kept", err=True)


class _Stopped(BaseException):
    """A signal came while the server was being asked for work: out of the wait."""
