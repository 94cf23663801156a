from __future__ import annotations

import os
import shlex
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ledger.cli.outboxes import open_saddle, outbox_option, send_soon
from ledger.cli.redacting import redact_options, redactor_for
from ledger.errors import StorageError

if TYPE_CHECKING:
    from ledger.client.redaction import Redactor
    from ledger.client.saddle import Saddle, Session

TITLE_CHARS_MAX = 500


@click.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="COMMAND…")
@click.option("--task", "task_id", metavar="ID", help="The task to work on; by default a new one.")
@click.option("--goal", "goal_id", metavar="ID", help="The goal that the new task belongs to.")
@click.option("--title", help="The title of the new task; by default the command.")
@click.option("--agent", help="What is run, such as claude-code; by default the command's name.")
@redact_options
@outbox_option
def command(
    words: tuple[str, ...],
    task_id: str | None,
    goal_id: str | None,
    title: str | None,
    agent: str | None,
    redact: bool,
    patterns: tuple[str, ...],
    outbox: Path | None,
) -> None:
    """Run an agent or a script as a session of a task: its output lines are events, its exit code is the result.

    Output, signals and the exit code pass through; what the ledger is told of them is without secrets. `ledgerd
    comment` and `ledgerd result` inside the command find the session by themselves. What the command leaves running
    is ended with it, and nothing of it outlives `ledgerd run` itself, even if that is killed. It never waits for the
    server, and where nothing can be kept on disk it runs all the same.

    \b
    Example:
      ledgerd run --goal parser -- ./agent.sh --fast
    """
    if task_id and (goal_id or title):
        raise click.UsageError("--task names a task that is there; --goal and --title are for a new one")
    redactor = redactor_for(redact, patterns)
    fields: dict[str, Any] = {"agent": agent or Path(words[0]).name, "task_id": task_id}
    if not task_id:
        shown = title or shlex.join(words)
        shown = shown if redactor is None else redactor.redact(shown)
        fields["task"] = {"title": shown[:TITLE_CHARS_MAX], "goal_id": goal_id}
    try:
        saddle = open_saddle(outbox)
        session = saddle.open_session(cwd=str(Path.cwd()), host=socket.gethostname(), **fields)
    except StorageError as error:
        click.echo(f"nothing of this is kept: {error.detail}\nhint: {error.hint}", err=True)
        os.execvp(words[0], words)  # noqa: S606 — running it is what was asked for
    with saddle:
        sys.exit(_run(saddle, session, words, redactor))


def _run(saddle: Saddle, session: Session, words: Sequence[str], redactor: Redactor | None) -> int:
    from ledger.daemons.agent import Agent, environment_of, passing_signals_on, push_result

    shown = shlex.join(words)
    agent = Agent(session, words, environment=environment_of(session, saddle.outbox.path), redactor=redactor)
    try:
        with passing_signals_on(agent):
            ended = agent.run(shown)
            push_result(session, shown, ended, redactor)
        send_soon(saddle, session)
    except StorageError as error:
        click.echo(f"how it ended is not kept: {error.detail}\nhint: {error.hint}", err=True)
    if ended.exit_code in (126, 127):
        click.echo(f"error: {words[0]}: {ended.last_words}", err=True)
    return ended.exit_code
