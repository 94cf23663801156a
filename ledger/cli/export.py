from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click

from ledger.cli.output import progress_bar
from ledger.cli.settings import setting
from ledger.cli.stores import open_store
from ledger.moving import Counts, export_ledger


@click.command("export")
@click.argument("file", type=click.Path(dir_okay=False, writable=True, allow_dash=True, path_type=Path))
@setting("store", metavar="URL", help="The ledger to export; a server may go on serving it.")
def command(file: Path, store: str) -> None:
    """Write a whole ledger to FILE, one JSON object a line; - is standard output.

    Every event is there with its payload byte for byte, and every loser of a conflict. `ledgerd import ledger`
    reads it back. Access tokens are not part of it.

    \b
    Example:
      ledgerd export ledger.ndjson
    """
    counts = asyncio.run(_export(store, file))
    click.echo(
        f"{counts.events} events of {counts.streams} streams and {counts.conflicts} conflicts exported", err=True
    )


async def _export(url: str, file: Path) -> Counts:
    store = await open_store(url, read_only=True)
    try:
        with _output(file) as out, progress_bar("exporting", sum(await store.heads())) as progress:
            return await export_ledger(store, out.write, progress=progress)
    finally:
        await store.close()


@contextmanager
def _output(file: Path) -> Iterator[BinaryIO]:
    """Standard output, or a file that takes its name only when it is whole."""
    if str(file) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    part = file.with_name(file.name + ".part")
    with part.open("wb") as out:
        yield out
        out.flush()
        os.fsync(out.fileno())
    part.replace(file)
