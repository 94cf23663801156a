from __future__ import annotations

import asyncio
from pathlib import Path

import click

from ledger.cli.output import progress_bar
from ledger.cli.settings import setting
from ledger.cli.stores import needed_sqlite_path
from ledger.store.postgres_url import is_postgres


@click.command("backup")
@click.argument("file", type=click.Path(dir_okay=False, writable=True, path_type=Path))
@setting("store", metavar="URL", help="The ledger to back up; servers may go on serving it.")
def command(file: Path, store: str) -> None:
    """Write a whole ledger to FILE as it stands at one moment: events, seals, access tokens, counts.

    Of a SQLite ledger FILE is a ledger itself, which `ledgerd verify` can be run on. `ledgerd restore` makes a ledger
    of the same kind out of it. To move to another kind, see `ledgerd copy`.

    \b
    Example:
      ledgerd backup monday.db
      ledgerd backup monday.zip --store postgresql://db1,db2/ledger
    """
    asyncio.run(_backup(store, file))
    click.echo(f"backed up to {file}", err=True)


async def _backup(url: str, file: Path) -> None:
    if is_postgres(url):
        from ledger.store import postgres_backup

        with progress_bar("backing up", None, in_bytes=True) as progress:
            await postgres_backup.backup(url, file, progress=progress)
        return
    from ledger.store import sqlite_backup

    await sqlite_backup.backup(needed_sqlite_path(url), file)
