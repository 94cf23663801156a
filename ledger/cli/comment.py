from __future__ import annotations

import sys
from pathlib import Path

import click

from ledger.cli.outboxes import open_saddle, outbox_option, send_option, send_soon, session_of, session_option


@click.command("comment")
@click.argument("text", nargs=-1)
@session_option
@outbox_option
@send_option
def command(text: tuple[str, ...], session_id: str | None, outbox: Path | None, send: bool) -> None:
    """Say something to the people who read the ledger, in the session at hand. TEXT, or standard input.

    It is on disk when this returns with 0; if the server is away it is sent later.

    \b
    Example:
      ledgerd comment "All 240 cases pass."
      ledgerd comment << 'EOF'
      Several lines, with "quotes" and $dollars.
      EOF
    """
    body = " ".join(text) if text and text != ("-",) else _standard_input()
    if not body.strip():
        raise click.UsageError("there is nothing to say")
    with open_saddle(outbox, send=send) as saddle:
        session = session_of(saddle, session_id)
        session.comment(body)
        if send:
            send_soon(saddle, session)


def _standard_input() -> str:
    if sys.stdin.isatty():
        raise click.UsageError('say what: ledgerd comment "…", or text on standard input')
    return sys.stdin.buffer.read().decode(errors="replace").rstrip("\n")
