"""A backup of a PostgreSQL ledger: all its tables as of one moment, while servers write on.

A zip archive: `ledger.json` says which ledger it is, and each table is a member in PostgreSQL's binary COPY format
(https://www.postgresql.org/docs/current/sql-copy.html, "Binary Format"). Restored, it is the same ledger: the same
id, seals, tokens and counts.
"""

from __future__ import annotations

import zipfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import IO

import msgspec

from ledger.errors import StoreMismatch
from ledger.store import postgres_schema
from ledger.store.postgres_database import Database, driver_errors
from ledger.store.postgres_url import PostgresUrl, parse_url

FORMAT = 1
_DAY_S = 24 * 3600.0
_BLOCK_BYTES = 256 * 2**10
_MANIFEST = "ledger.json"
_TABLES = {
    "ledger": "bucket ledger_id schema_version buckets created_at",
    "counters": "bucket moves position seal link streams roots",
    "places": "bucket stream root",
    "roots": "bucket root_n root",
    "streams": "bucket stream_n stream root_n task_id saddle contiguous high_seq events last_recorded_at",
    "events": "bucket position stream_n seq root_n decisive at recorded_at digest kind actor extra payload",
    "losers": "bucket stream_n seq digest kind actor payload at received_at",
    "deliveries": "bucket stream_n deliveries duplicates conflicts late results_repeated",
    "seals": "bucket number first last digest",
    "checkpoints": "bucket name version position state",
    "tokens": "bucket id role name hash created_at expires_at revoked_at",
}

Progress = Callable[[int], object]


class Manifest(msgspec.Struct):
    """`ledgerd_backup` is the version of the format."""

    ledgerd_backup: int
    schema_version: int
    ledger_id: str
    buckets: int


async def backup(url: str, out: Path, *, progress: Progress) -> None:
    """Writes the ledger at `url` to `out`, which takes its name only when it is whole. `progress` is told the bytes
    that were read. Raises StorageError, StoreMismatch where there is no ledger."""
    parsed = parse_url(url)
    database = await Database.open(parsed, read_only=True)
    part = out.with_name(out.name + ".part")
    try:
        founded = await postgres_schema.check(database, parsed)
        manifest = Manifest(FORMAT, postgres_schema.SCHEMA_VERSION, founded.ledger_id, founded.buckets)
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.writestr(_MANIFEST, msgspec.json.encode(manifest))
            await _write(database, archive, progress)
    finally:
        await database.close()
    part.replace(out)


async def _write(database: Database, archive: zipfile.ZipFile, progress: Progress) -> None:
    done = 0
    with driver_errors(database.place):
        async with (
            database.connection() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            for table, columns in _TABLES.items():
                with archive.open(table, "w", force_zip64=True) as member:

                    async def take(data: bytes, member: IO[bytes] = member) -> None:
                        nonlocal done
                        member.write(data)
                        done += len(data)
                        progress(done)

                    await connection.copy_from_table(
                        table, columns=columns.split(), output=take, format="binary", timeout=_DAY_S
                    )


async def restore(file: Path, url: str, *, progress: Progress) -> None:
    """Makes a ledger at `url` out of a backup. `progress` is told the bytes that were written. Raises StoreMismatch
    where there is a ledger already, or `file` is no backup; then nothing was changed."""
    parsed = parse_url(url)
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile as error:
        raise StoreMismatch(f"{file} is no backup of a PostgreSQL ledger") from error
    with archive:
        _check(file, archive, parsed)
        database = await Database.open(parsed, read_only=False)
        try:
            await _read(database, parsed, archive, progress)
        finally:
            await database.close()


def _check(file: Path, archive: zipfile.ZipFile, url: PostgresUrl) -> None:
    try:
        manifest = msgspec.json.decode(archive.read(_MANIFEST), type=Manifest)
    except (KeyError, msgspec.MsgspecError) as error:
        raise StoreMismatch(f"{file} is no backup of a PostgreSQL ledger") from error
    if (manifest.ledgerd_backup, manifest.schema_version) != (FORMAT, postgres_schema.SCHEMA_VERSION):
        raise StoreMismatch(
            f"{file} has format {manifest.ledgerd_backup} and schema {manifest.schema_version}; this ledgerd reads"
            f" format {FORMAT} and schema {postgres_schema.SCHEMA_VERSION}"
        )
    if url.buckets not in (None, manifest.buckets):
        raise StoreMismatch(f"{file} has {manifest.buckets} buckets, not {url.buckets}", hint="Leave `buckets` away.")


async def _read(database: Database, url: PostgresUrl, archive: zipfile.ZipFile, progress: Progress) -> None:
    done = 0

    async def blocks(table: str) -> AsyncIterator[bytes]:
        nonlocal done
        with archive.open(table) as member:
            while block := member.read(_BLOCK_BYTES):
                yield block
                done += len(block)
                progress(done)

    with driver_errors(database.place):
        async with database.connection() as connection, connection.transaction():
            if not await postgres_schema.tables(connection, url):
                await connection.execute(postgres_schema.ddl(url.schema))
            elif await postgres_schema.founded(connection, url) is not None:
                raise StoreMismatch(
                    f"there is a ledger at {url.place}", hint="Name another schema: …?schema=restored."
                )
            for table, columns in _TABLES.items():
                await connection.copy_to_table(
                    table, columns=columns.split(), source=blocks(table), format="binary", timeout=_DAY_S
                )
