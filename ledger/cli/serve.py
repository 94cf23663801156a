"""`ledgerd serve`"""

from __future__ import annotations

import socket
from collections.abc import Callable

import click
import msgspec
import uvloop

from ledger.cli.serving import Listening, bound, serve, url_of
from ledger.cli.settings import Settings, current_settings, setting
from ledger.cli.workers import run_workers
from ledger.errors import InvalidField
from ledger.store.postgres_url import is_postgres


@click.command()
@setting("store", help="The ledger to serve: sqlite:///PATH or postgresql://USER@HOST/DATABASE.")
@setting("host", help="The address to listen on.")
@setting("port", type=int, help="The port to listen on; 0 takes a free one.")
@setting("workers", type=click.IntRange(1, 64), help="How many processes serve; more than one takes PostgreSQL.")
def command(store: str, host: str, port: int, workers: int) -> None:
    """Serve a ledger over HTTP.

    On the first start it makes an owner token, keeps it beside the ledger (mode 0600) and prints a login link;
    LEDGERD_OWNER_TOKEN sets the token instead, and must where the ledger is no file.

    \b
    Example:
      ledgerd serve --store sqlite:///ledger.db --port 0
      ledgerd serve --store postgresql://ledgerd@db1,db2/ledger --workers 4
    """
    settings = msgspec.structs.replace(current_settings(), store=store, host=host, port=port, workers=workers)
    if workers == 1:
        uvloop.run(serve(settings, _say))
        return
    if not is_postgres(store):
        raise InvalidField("workers", "a SQLite ledger is served by one process", hint="Leave --workers away.")
    with bound(host, port) as listener:
        url = url_of(listener)
        run_workers(workers, lambda ready: _work(settings, listener, ready), lambda: _listening(url))


def _work(settings: Settings, listener: socket.socket, ready: Callable[[], None]) -> None:
    async def started(_: Listening) -> None:
        ready()

    uvloop.run(serve(settings, started, listener))


async def _say(listening: Listening) -> None:
    _listening(listening.url)
    if listening.login_link is not None:
        click.echo(f"log in at {listening.login_link}")


def _listening(url: str) -> None:
    click.echo(f"ledgerd listening on {url}")
