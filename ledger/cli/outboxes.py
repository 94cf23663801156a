"""What the commands share that emit: which outbox, which session, and how long they try to send."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ledger.cli.settings import current_settings, setting
from ledger.cli.terminal import one_line
from ledger.errors import NotFound

if TYPE_CHECKING:
    from ledger.client.saddle import Saddle, Session

SEND_S = 1.0
LOOK_UP_S = 5.0

_NO_SESSION = (
    "no session is named: run it inside `ledgerd run`, set LEDGERD_SESSION, or open one with"
    " `ledgerd push --session ID --title TEXT`"
)


def outbox_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--outbox`: passes `outbox`, None for the default."""
    return setting(
        "outbox",
        metavar="PATH",
        type=click.Path(dir_okay=False, path_type=Path),
        help="The outbox; by default LEDGERD_OUTBOX, else the one in the XDG state folder.",
    )(command)


def session_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--session`: passes `session_id`."""
    return click.option(
        "--session", "session_id", envvar="LEDGERD_SESSION", metavar="ID", help="By default LEDGERD_SESSION."
    )(command)


def send_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--no-send`: passes `send`."""
    return click.option(
        "--send/--no-send", default=True, help=f"Try for up to {SEND_S:g} s to send at once, or leave it to others."
    )(command)


def open_saddle(outbox: Path | None, *, send: bool = True) -> Saddle:
    """A saddle of the server that the settings name."""
    from ledger.client.saddle import Saddle

    settings = current_settings()
    return Saddle(settings.url, settings.token, outbox=outbox, drain=send)


def session_of(saddle: Saddle, session_id: str | None) -> Session:
    """The session of that id. One that was not opened through this outbox is looked up on the server, to go on
    behind what was pushed to it. Raises ApiError, NotFound; click.UsageError where no session is named."""
    from ledger.client.api import ApiError

    if not session_id:
        raise click.UsageError(_NO_SESSION)
    if not saddle.outbox.has_session(session_id):
        try:
            with saddle.api(attempts_max=1, timeout_s=LOOK_UP_S) as api:
                high_seq = api.push(session_id, [])["high_seq"]
        except ApiError as error:
            if error.code != "unknown_session":
                raise
            raise NotFound(
                f"session {session_id!r} is neither in the outbox {saddle.outbox.path} nor known to the server",
                hint="Open it with `ledgerd push --session ID --title TEXT`, or name the outbox it is in.",
            ) from error
        saddle.outbox.adopt(session_id, session_id, high_seq=-1 if high_seq is None else high_seq)
    return saddle.session(session_id)


def send_soon(saddle: Saddle, session: Session, timeout_s: float = SEND_S) -> bool:
    """Tries to send what waits of a session, the last that is done with this saddle; says on standard error where it
    stays on disk for now, and then does not wait for the server again."""
    sent = saddle.flush(timeout_s, session_id=session.id, patient=False)
    if not sent:
        trouble = saddle.trouble
        saddle.close(0)
        why = f" ({one_line(trouble.detail)})" if trouble else ""
        click.echo(f"kept in {saddle.outbox.path}, to be sent later{why}", err=True)
        if trouble and trouble.hint:
            click.echo(f"hint: {one_line(trouble.hint)}", err=True)
    return sent
