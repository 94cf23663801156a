from __future__ import annotations

import sys
from pathlib import Path

import click

from ledger.cli.outboxes import open_saddle, outbox_option, send_option, send_soon, session_of, session_option
from ledger.events.kinds import STATES


@click.command("result")
@click.argument("state", type=click.Choice(sorted(STATES)), metavar="STATE")
@click.option("--summary", help="The explanation, the question, or what came of it; - reads standard input.")
@session_option
@outbox_option
@send_option
def command(state: str, summary: str | None, session_id: str | None, outbox: Path | None, send: bool) -> None:
    """Say how the session at hand stands: working, waiting, suspended, done, failed or cancelled.

    done, failed and cancelled end it; the first end counts. It is on disk when this returns with 0; if the server is
    away it is sent later.

    \b
    Example:
      ledgerd result failed --summary "The tests do not compile: no C++20 here."
    """
    if summary == "-":
        summary = sys.stdin.buffer.read().decode(errors="replace").strip()
    with open_saddle(outbox, send=send) as saddle:
        session = session_of(saddle, session_id)
        if not session.result(state, summary):
            click.echo("the session has ended before: this changes nothing", err=True)
        if send:
            send_soon(saddle, session)
