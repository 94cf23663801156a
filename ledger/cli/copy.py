from __future__ import annotations

import asyncio

import click

from ledger.cli.output import json_option, print_json, progress_bar
from ledger.cli.stores import open_store
from ledger.moving import Copied, copy_ledger


@click.command("copy")
@click.option(
    "--from", "source", metavar="URL", required=True, help="The ledger to copy; it may be served meanwhile."
)
@click.option("--to", "target", metavar="URL", required=True, help="The ledger to copy to, made if it is not there.")
@json_option
def command(source: str, target: str, as_json: bool) -> None:
    """Copy a ledger to another store, of whatever kind, and prove that both tell the same.

    It can be broken off and called again, and called once more for what has arrived since. To move a fleet: copy
    while the old server runs, stop it, copy again, start the new one under the same address. Daemons go on with the
    tokens that they have.

    \b
    Example:
      ledgerd copy --from sqlite:///ledger.db --to postgresql://db1,db2/ledger
    """
    copied = asyncio.run(_copy(source, target))
    if as_json:
        print_json(copied)
        return
    click.echo(
        f"{copied.imported.stored} events copied, {copied.imported.duplicates} were there already;"
        f" {copied.roots} goals, tasks and projects with {copied.events} events tell the same in both"
    )


async def _copy(source_url: str, target_url: str) -> Copied:
    source = await open_store(source_url, read_only=True)
    try:
        target = await open_store(target_url)
        try:
            with progress_bar("copying and comparing", 2 * sum(await source.heads())) as progress:
                return await copy_ledger(source, target, progress=progress)
        finally:
            await target.close()
    finally:
        await source.close()
