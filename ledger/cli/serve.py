"""`ledgerd serve`"""

from __future__ import annotations

import click
import msgspec
import uvloop

from ledger.cli.serving import Listening, serve
from ledger.cli.settings import current_settings, setting


@click.command()
@setting("store", help="The ledger to serve: sqlite:///PATH.")
@setting("host", help="The address to listen on.")
@setting("port", type=int, help="The port to listen on; 0 takes a free one.")
def command(store: str, host: str, port: int) -> None:
    """Serve a ledger over HTTP.

    On the first start it makes an owner token, keeps it beside the ledger (mode 0600) and prints a login link;
    LEDGERD_OWNER_TOKEN sets the token instead.

    \b
    Example:
      ledgerd serve --store sqlite:///ledger.db --port 0
    """
    settings = msgspec.structs.replace(current_settings(), store=store, host=host, port=port)
    uvloop.run(serve(settings, _say))


async def _say(listening: Listening) -> None:
    click.echo(f"ledgerd listening on {listening.url}")
    if listening.login_link is not None:
        click.echo(f"log in at {listening.login_link}")
