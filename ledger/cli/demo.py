"""`ledgerd demo`"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import tempfile
import threading
from pathlib import Path

import click
import msgspec
import uvloop

from ledger.cli.demo_fleet import tell_history, work_on
from ledger.cli.serving import Listening, serve
from ledger.cli.settings import current_settings, setting
from ledger.client.api import Api


@click.command()
@click.option("--store", help="Keep the demo in this store; by default it is gone when the demo ends.")
@setting("host", help="The address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="The port; by default 8137, or a free one if it is taken."
)
def command(store: str | None, host: str, port: int | None) -> None:
    """Serve a ledger with a small fleet at work in it.

    Three saddles bring goals that run, wait, fail and are delivered again and again; everything goes through the
    same API as any daemon's pushes. Ends with Ctrl-C.

    \b
    Example:
      ledgerd demo
    """
    with tempfile.TemporaryDirectory(prefix="ledgerd-demo-") as folder:
        settings = msgspec.structs.replace(
            current_settings(),
            store=store or f"sqlite:///{Path(folder) / 'ledger.db'}",
            host=host,
            port=_usual_port(host) if port is None else port,
        )
        if store is None:
            os.environ.pop("LEDGERD_OWNER_TOKEN", None)  # what is gone afterwards has a token of its own
        uvloop.run(serve(settings, _play))


async def _play(listening: Listening) -> None:
    click.echo(f"ledgerd listening on {listening.url}")
    click.echo(f"log in at {listening.login_link}")
    ended = threading.Event()
    try:
        await asyncio.to_thread(_tell, listening)
        click.echo("the fleet is at work; Ctrl-C ends the demo")
        await asyncio.to_thread(_work, listening, ended)
    finally:
        ended.set()


def _tell(listening: Listening) -> None:
    with Api(listening.url, listening.owner_token) as owner:
        tell_history(owner)


def _work(listening: Listening, ended: threading.Event) -> None:
    with Api(listening.url, listening.owner_token, attempts_max=1) as owner, contextlib.suppress(Exception):
        work_on(owner, ended)


def _usual_port(host: str) -> int:
    usual = current_settings().port
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, usual))
        except OSError:
            return 0
    return usual
