"""A backup of a SQLite ledger: a copy of its file as of one moment, while a server writes on.

It is a ledger itself: the same id, seals, tokens and counts. `ledgerd verify` can be run on it as it is.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from ledger.errors import StoreMismatch
from ledger.store import sqlite_file
from ledger.store.sqlite_file import driver_errors


async def backup(path: Path, out: Path) -> None:
    """Writes a copy of the ledger at `path` to `out`, which takes its name only when it is whole.

    Raises StorageError, StoreMismatch where `path` is no ledger."""
    path = path.expanduser().resolve()
    if not path.exists():
        raise StoreMismatch(f"there is no ledger at {path}", hint="Name the ledger's file with --store.")
    await _check(path)
    part = out.with_name(out.name + ".part")
    part.unlink(missing_ok=True)
    with driver_errors(path):
        await asyncio.to_thread(_copy, path, part)
    _flush(part)
    part.replace(out)


async def restore(file: Path, path: Path) -> None:
    """Makes `file`, a backup, the ledger at `path`. Raises StoreMismatch where there is one, or `file` is none."""
    path = path.expanduser().resolve()
    if path.exists():
        raise StoreMismatch(f"there is a file at {path}", hint="Move it away, or name another with --store.")
    await _check(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    shutil.copyfile(file, part)
    _flush(part)
    part.replace(path)


async def _check(path: Path) -> None:
    db = await sqlite_file.connect(path, read_only=True)
    try:
        if await sqlite_file.check(db, path) == 0:
            raise StoreMismatch(f"{path} is no ledger")
    finally:
        await db.close()


def _copy(path: Path, out: Path) -> None:
    """VACUUM INTO reads from one snapshot, however long it takes, and stands in no writer's way."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("VACUUM INTO ?", (str(out),))


def _flush(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
