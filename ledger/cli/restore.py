from __future__ import annotations

import asyncio
from pathlib import Path

import click

from ledger.cli.output import progress_bar
from ledger.cli.settings import setting
from ledger.cli.stores import needed_sqlite_path, open_store
from ledger.errors import LedgerDamaged
from ledger.store.postgres_url import is_postgres
from ledger.store.verifying import Verdict, verify


@click.command("restore")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@setting("store", metavar="URL", help="Where the ledger is to be; there must be none yet.")
def command(file: Path, store: str) -> None:
    """Make a ledger out of a backup, and verify its seals.

    Cursors that were given out after the backup was made are refused by it. Daemons that send again what they have
    sent since bring it up to date: nothing is stored twice.

    \b
    Example:
      ledgerd restore monday.db --store sqlite:///ledger.db
      ledgerd restore monday.zip --store postgresql://db3/ledger
    """
    verdict = asyncio.run(_restore(store, file))
    if not verdict.ok:
        raise LedgerDamaged(verdict.what)
    click.echo(f"{verdict.events} events in {verdict.seals} transactions restored, all as they were sealed", err=True)


async def _restore(url: str, file: Path) -> Verdict:
    if is_postgres(url):
        from ledger.store import postgres_backup

        with progress_bar("restoring", None, in_bytes=True) as progress:
            await postgres_backup.restore(file, url, progress=progress)
    else:
        from ledger.store import sqlite_backup

        await sqlite_backup.restore(file, needed_sqlite_path(url))
    store = await open_store(url, read_only=True)
    try:
        return await verify(store)
    finally:
        await store.close()
