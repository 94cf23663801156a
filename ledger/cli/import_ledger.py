from __future__ import annotations

import asyncio
import os
from typing import BinaryIO

import click

from ledger.cli.output import json_option, print_json, progress_bar
from ledger.cli.settings import setting
from ledger.cli.stores import open_store
from ledger.moving import Imported, import_ledger


@click.command("ledger")
@click.argument("file", type=click.File("rb"))
@setting("store", metavar="URL", help="The ledger to import into; no server may be serving it.")
@json_option
def command(file: BinaryIO, store: str, as_json: bool) -> None:
    """Bring an exported ledger (FILE; - is standard input) into a store, with the times at which it was recorded.

    Into an empty store every event comes to stand where it stood. What is there already is not stored again; what
    is there with other content stays, is named, and makes the exit code 1.

    \b
    Example:
      ledgerd import ledger ledger.ndjson --store sqlite:///copy.db
    """
    imported = asyncio.run(_import(store, file))
    if as_json:
        print_json(imported)
    else:
        click.echo(
            f"{imported.stored} events stored, {imported.duplicates} were there already,"
            f" {len(imported.conflicts)} are there with other content"
        )
        for session_id, seq in imported.conflicts:
            click.echo(f"conflict: session {session_id}, seq {seq}", err=True)
    if imported.conflicts:
        raise SystemExit(1)


async def _import(url: str, file: BinaryIO) -> Imported:
    store = await open_store(url)
    try:
        with progress_bar("importing", _bytes(file), in_bytes=True) as progress:
            return await import_ledger(store, file, progress=progress)
    finally:
        await store.close()


def _bytes(file: BinaryIO) -> int | None:
    """How long the file is; None for a pipe."""
    if not file.seekable():
        return None
    end = file.seek(0, os.SEEK_END)
    file.seek(0)
    return end
