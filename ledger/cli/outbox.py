from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ledger.cli.outboxes import open_saddle, outbox_option
from ledger.cli.output import json_option, print_json, print_table
from ledger.cli.terminal import counted, one_line
from ledger.errors import LedgerError
from ledger.events.times import format_instant

if TYPE_CHECKING:
    from ledger.client.outbox import Backlog


@click.group("outbox", invoke_without_command=True)
@outbox_option
@click.pass_context
def command(ctx: click.Context, outbox: Path | None) -> None:
    """Show what waits to be sent, send it, and look after what the server would not take.

    \b
    Example:
      ledgerd outbox
      ledgerd outbox drain --wait 60
    """
    from ledger.client.outbox import default_path

    ctx.meta["outbox"] = (outbox or default_path()).expanduser().absolute()
    if ctx.invoked_subcommand is None:
        ctx.invoke(status)


@command.command("status")
@json_option
@click.pass_context
def status(ctx: click.Context, as_json: bool = False) -> None:
    """Say how much waits, since when, what the server would not take, and what went wrong in hooks.

    \b
    Example:
      ledgerd outbox status --json
    """
    from ledger.hooks import troubles

    path: Path = ctx.meta["outbox"]
    with _backlog(path) as backlog:
        standing = backlog.standing()
    of_hooks = troubles.read(str(path))
    if as_json:
        oldest = standing.oldest and format_instant(standing.oldest)
        print_json(
            {"path": str(path), **msgspec.structs.asdict(standing), "oldest": oldest, "hook_troubles": of_hooks}
        )
        return
    since = f", the oldest since {format_instant(standing.oldest)}" if standing.oldest else ""
    click.echo(f"{path}: {standing.sessions} sessions, {standing.bytes} bytes")
    click.echo(f"{standing.waiting} wait to be sent{since}; {standing.kept} were sent and are kept for a while")
    click.echo(f"{standing.dead_letters} dead letters")
    if of_hooks:
        click.echo(f"{counted(len(of_hooks), 'trouble')} in hooks, the last one: {one_line(of_hooks[-1])}")
        click.echo(f"all of them: {troubles.path_of(str(path))}")
    print_table(
        ["refused session", "code", "why"],
        [(refused.session_id, refused.code, refused.detail) for refused in standing.refused],
    )


@command.command("drain")
@click.option("--wait", "wait_s", type=click.FloatRange(0), default=10, show_default=True, help="For up to so long.")
@click.option("--check", is_flag=True, help="Ask first whether the server still has all that it acknowledged.")
@click.pass_context
def drain(ctx: click.Context, wait_s: float, check: bool) -> None:
    """Send what waits. Exits with 1 where some of it still waits in the end.

    A server that was down is asked by itself whether it still has all that it acknowledged; --check does so where it
    was restored from a backup and nobody noticed.

    \b
    Example:
      ledgerd outbox drain --wait 60
    """
    if check:
        with _backlog(ctx.meta["outbox"]) as backlog:
            backlog.doubt_all()
    with open_saddle(ctx.meta["outbox"]) as saddle:
        if saddle.flush(wait_s):
            click.echo("all is sent")
            return
        trouble = saddle.trouble
    if trouble is not None:
        raise trouble
    raise LedgerError(f"not all was sent within {wait_s:g} s", hint="Give it more time with --wait.")


@command.command("dead")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="How many at most.")
@json_option
@click.pass_context
def dead(ctx: click.Context, limit: int, as_json: bool) -> None:
    """List the dead letters: events that the server rejected, or holds with other content. The newest first.

    \b
    Example:
      ledgerd outbox dead --json
    """
    with _backlog(ctx.meta["outbox"]) as backlog:
        letters = backlog.dead_letters(limit)
    if as_json:
        print_json([_letter(letter) for letter in letters])
        return
    print_table(
        ["buried", "session", "seq", "kind", "code", "why"],
        [
            (
                format_instant(letter.buried_at),
                letter.session_id,
                str(letter.event.seq),
                letter.event.kind,
                letter.code,
                letter.detail,
            )
            for letter in letters
        ],
    )


@command.command("retry")
@click.pass_context
def retry(ctx: click.Context) -> None:
    """Put the dead letters back into the queue under new seqs, and try refused sessions again.

    \b
    Example:
      ledgerd outbox retry && ledgerd outbox drain
    """
    with open_saddle(ctx.meta["outbox"], send=False) as saddle, _backlog(saddle.outbox.path) as backlog:
        events, sessions = saddle.outbox.revive_dead_letters(), backlog.forgive()
    click.echo(f"{events} dead letters and {sessions} refused sessions are to be sent again")


@command.command("discard")
@click.confirmation_option(prompt="Throw the dead letters away for good?")
@click.pass_context
def discard(ctx: click.Context) -> None:
    """Throw the dead letters away for good.

    \b
    Example:
      ledgerd outbox discard --yes
    """
    with _backlog(ctx.meta["outbox"]) as backlog:
        click.echo(f"{backlog.discard_dead_letters()} dead letters are gone")


@contextmanager
def _backlog(path: Path) -> Iterator[Backlog]:
    from ledger.client.outbox import BYTES_MAX, Backlog

    backlog = Backlog(path, bytes_max=BYTES_MAX)
    try:
        yield backlog
    finally:
        backlog.close()


def _letter(letter: Any) -> dict[str, Any]:
    event = letter.event
    return {
        "session_id": letter.session_id,
        "seq": event.seq,
        "kind": event.kind,
        "actor": event.actor,
        "payload": msgspec.Raw(event.payload),
        "code": letter.code,
        "detail": letter.detail,
        "buried_at": format_instant(letter.buried_at),
    }
