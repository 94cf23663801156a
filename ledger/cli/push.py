from __future__ import annotations

import sys
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click
import msgspec

from ledger.cli.outboxes import open_saddle, outbox_option, send_soon, session_of, session_option
from ledger.cli.output import json_option, print_json
from ledger.cli.terminal import counted, one_line

if TYPE_CHECKING:
    from ledger.client.saddle import Saddle, Session
    from ledger.events.model import NewEvent

_READ_BYTES = 2**20
_LINE_BYTES_MAX = 16 * 2**20


class Pushed(msgspec.Struct):
    """What a push came to. `sent` is false where some of it still waits on disk."""

    session_id: str
    events: int = 0
    duplicates: int = 0
    conflicts: int = 0
    bad_lines: int = 0
    sent: bool = False


@click.command("push")
@session_option
@click.option("--task", "task_id", metavar="ID", help="Open the session on this task.")
@click.option("--title", help="Open the session on a new task of this title.")
@outbox_option
@click.option(
    "--wait", "wait_s", type=click.FloatRange(0), default=10, show_default=True, help="Send for up to so long."
)
@json_option
def command(
    session_id: str | None, task_id: str | None, title: str | None, outbox: Path | None, wait_s: float, as_json: bool
) -> None:
    """Push events from standard input: one JSON object a line, with kind and payload; actor, at and seq if wanted.

    Events without a seq get the next one of the session; pushing events with a seq again stores nothing twice. With
    neither --session nor LEDGERD_SESSION a new session is opened. Each line is on disk soon after it was read; what
    the server does not take in time is sent later. Lines that cannot be read are named, counted and passed over.

    \b
    Example:
      echo '{"kind": "comment", "payload": {"body": "Hello."}}' | ledgerd push --session s1 --title "Say hello"
    """
    if task_id and title:
        raise click.UsageError("--task and --title exclude each other")
    with open_saddle(outbox, send=wait_s > 0) as saddle:
        pushed = _push(saddle, session_id, task_id, title)
        if wait_s > 0:
            pushed.sent = send_soon(saddle, saddle.session(pushed.session_id), wait_s)
    if as_json:
        print_json(pushed)
    else:
        _show(pushed)
    if pushed.conflicts:
        raise SystemExit(1)


def _push(saddle: Saddle, session_id: str | None, task_id: str | None, title: str | None) -> Pushed:
    session: Session | None = None
    pushed = Pushed(session_id or "")
    number = 0
    for lines in _batches():
        events = []
        for line in lines:
            number += 1
            event = _read(line, number, pushed)
            if event is not None:
                events.append(event)
        session = session or _session(saddle, session_id, task_id, title, events)
        if events:
            added = session.add(events)
            pushed.events += len(events) - added.duplicates - added.conflicts
            pushed.duplicates += added.duplicates
            pushed.conflicts += added.conflicts
    session = session or _session(saddle, session_id, task_id, title, [])
    pushed.session_id = session.id
    return pushed


def _session(
    saddle: Saddle, session_id: str | None, task_id: str | None, title: str | None, events: list[NewEvent]
) -> Session:
    """The session, opened if need be. Where all seqs are ours, the server may count on there being no gaps."""
    from ledger.client.outbox import NEXT_SEQ

    fields: dict[str, Any] = {"contiguous": all(event.seq == NEXT_SEQ for event in events)}
    if task_id:
        return saddle.open_session(session_id, task_id=task_id, **fields)
    if title or not session_id:
        return saddle.open_session(session_id, task={"title": title or "Pushed from a shell"}, **fields)
    return session_of(saddle, session_id)


def _read(line: bytes, number: int, pushed: Pushed) -> NewEvent | None:
    """The event of a line; None for an empty line, and for one that cannot be read, which is named."""
    from ledger.client.lines import BadLine, read_line

    if not line.strip():
        return None
    try:
        return read_line(line)
    except BadLine as bad:
        pushed.bad_lines += 1
        click.echo(f"line {number}: {one_line(str(bad))}", err=True)
        return None


def _batches() -> Iterator[list[bytes]]:
    """The lines of standard input, as many at once as have come."""
    rest = b""
    while data := cast(BufferedReader, sys.stdin.buffer).read1(_READ_BYTES):
        *lines, rest = (rest + data).split(b"\n")
        if len(rest) > _LINE_BYTES_MAX:  # no event can be that long: let it be named rather than fill the memory
            lines, rest = [*lines, rest], b""
        yield lines
    if rest:
        yield [rest]


def _show(pushed: Pushed) -> None:
    click.echo(f"session {one_line(pushed.session_id)}")
    parts = [counted(pushed.events, "event") + (" sent" if pushed.sent else " kept")]
    if pushed.duplicates:
        parts.append(f"{pushed.duplicates} were there already")
    if pushed.conflicts:
        parts.append(f"{pushed.conflicts} are there with other content")
    if pushed.bad_lines:
        parts.append(counted(pushed.bad_lines, "bad line"))
    click.echo(", ".join(parts))
