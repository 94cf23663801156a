from __future__ import annotations

import signal
import socket
import threading
from pathlib import Path
from random import Random
from types import FrameType
from typing import TYPE_CHECKING

import click
import msgspec

from ledger.cli.outboxes import open_saddle, outbox_option
from ledger.cli.terminal import one_line

if TYPE_CHECKING:
    from ledger.client.saddle import Saddle, Work
    from ledger.daemons.agent import Agent

WAIT_S = 25.0


@click.command("worker")
@click.option("--command", "line", required=True, help="What works on a task; run by /bin/sh.")
@click.option("--agent", help="What the command is, such as claude-code.")
@click.option("--once", is_flag=True, help="End after one task, or when there is none at once.")
@outbox_option
def command(line: str, agent: str | None, once: bool, outbox: Path | None) -> None:
    """Ask for queued tasks, and run a command for each, one after the other, as `ledgerd run` does.

    The command finds the task as JSON on standard input, and in LEDGERD_TASK_ID, LEDGERD_TASK_TITLE,
    LEDGERD_TASK_BRIEF and LEDGERD_GOAL_ID. A signal goes to the command, if one runs, and ends the worker after it.
    For more at once run more workers; they may share an outbox.

    \b
    Example:
      ledgerd worker --command 'claude -p "$LEDGERD_TASK_BRIEF"'
    """
    with open_saddle(outbox) as saddle:
        _Worker(saddle, line, agent).work(once)


class _Worker:
    def __init__(self, saddle: Saddle, line: str, agent: str | None) -> None:
        self._saddle = saddle
        self._line = line
        self._agent = agent
        self._running: Agent | None = None
        self._asking = False
        self._stop = threading.Event()

    def work(self, once: bool) -> None:
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._signalled)
        while not self._stop.is_set():
            work = self._ask(0 if once else WAIT_S)
            if work is not None:
                self._run(work)
            if once:
                return

    def _signalled(self, number: int, _: FrameType | None) -> None:
        self._stop.set()
        if self._running is not None:
            self._running.signal(number)
        elif self._asking:
            raise _Stopped

    def _ask(self, wait_s: float) -> Work | None:
        """Waits for the server where it is away, however long that takes."""
        from ledger.client.api import ApiError
        from ledger.client.retries import AGAIN, backoff_s

        failures = 0
        while not self._stop.is_set():
            self._asking = True
            try:
                return self._saddle.ask(wait_s=wait_s, agent=self._agent, host=socket.gethostname())
            except _Stopped:
                return None
            except ApiError as error:
                if error.status is not None and error.status not in AGAIN:
                    raise
                failures += 1
                if failures == 1:
                    click.echo(f"waiting: {one_line(error.detail)}", err=True)
                pause_s = backoff_s(failures, Random()) if error.retry_after_s is None else error.retry_after_s  # noqa: S311
                self._stop.wait(pause_s)
            finally:
                self._asking = False
        return None

    def _run(self, work: Work) -> None:
        from ledger.daemons.agent import Agent, environment_of, push_result

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
        self._running = Agent(work.session, words, environment=environment, input=msgspec.json.encode(task))
        try:
            push_result(work.session, self._line, self._running.run(self._line))
        finally:
            self._running = None


class _Stopped(BaseException):
    """A signal came while the server was being asked for work: out of the wait."""
