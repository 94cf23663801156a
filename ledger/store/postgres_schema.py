"""The tables of a ledger on PostgreSQL: made, founded, and checked before anything is written to them."""

from __future__ import annotations

import secrets
from contextlib import suppress
from importlib.resources import files

import asyncpg
import msgspec

from ledger.errors import StoreMismatch
from ledger.store import sealing
from ledger.store.postgres_database import Connection, Database, driver_errors
from ledger.store.postgres_url import DEFAULT_BUCKETS, PostgresUrl

SCHEMA_VERSION = 1
_TRIES = 5  # servers that start together on an empty database make way for the first

_MADE_MEANWHILE = (
    asyncpg.DuplicateSchemaError,
    asyncpg.DuplicateTableError,
    asyncpg.DuplicateObjectError,
    asyncpg.UniqueViolationError,
)


class Founded(msgspec.Struct, frozen=True):
    """What a ledger was made with."""

    ledger_id: str
    buckets: int


def ddl(schema: str, *, citus: bool = False) -> str:
    """The SQL that makes the tables; with `citus` also what spreads them over a cluster."""
    head = f"CREATE SCHEMA IF NOT EXISTS {schema};\nSET search_path TO {schema};\n"
    return "\n".join([head, _script("0001"), *([_script("citus")] if citus else []), _script("yugabyte")])


async def prepare(database: Database, url: PostgresUrl, now_ns: int) -> Founded:
    """Makes what is missing of an empty ledger; refuses a foreign one, another version or another number of buckets,
    unchanged. Raises StoreMismatch, StorageError."""
    for _ in range(_TRIES):
        with driver_errors(database.place), suppress(*_MADE_MEANWHILE):
            async with database.connection() as connection, connection.transaction():
                if not await tables(connection, url):
                    await connection.execute(ddl(url.schema))
                return await founded(connection, url) or await _found(connection, url, now_ns)
    raise StoreMismatch(f"{url.place} is being made by another server", hint="Start this one again.")


async def check(database: Database, url: PostgresUrl) -> Founded:
    """What is there. Raises StoreMismatch where it is no ledger that this ledgerd knows; changes nothing."""
    with driver_errors(database.place):
        async with database.connection() as connection:
            found = await founded(connection, url) if await tables(connection, url) else None
    if found is None:
        raise StoreMismatch(f"there is no ledger at {url.place}", hint="Name the ledger with --store.")
    return found


async def tables(connection: Connection, url: PostgresUrl) -> bool:
    """Whether the schema holds tables; raises StoreMismatch where they are another program's."""
    rows = await connection.fetch(
        "SELECT tablename::text FROM pg_catalog.pg_tables WHERE schemaname = $1", url.schema
    )
    tables = {name for (name,) in rows}
    if tables and not {"ledger", "counters", "places", "streams", "events", "seals"} <= tables:
        raise StoreMismatch(
            f"{url.place} holds the tables of another program", hint="Name another one: …/DATABASE?schema=ledgerd."
        )
    return bool(tables)


async def founded(connection: Connection, url: PostgresUrl) -> Founded | None:
    try:
        row = await connection.fetchrow("SELECT ledger_id, schema_version, buckets FROM ledger WHERE bucket = 0")
    except asyncpg.UndefinedColumnError as error:
        raise StoreMismatch(f"{url.place} holds the tables of another program") from error
    if row is None:
        return None
    ledger_id, version, buckets = row
    if version != SCHEMA_VERSION:
        newer = version > SCHEMA_VERSION
        hint = "Run a newer ledgerd on it." if newer else "Export it with the ledgerd that wrote it, and import it."
        raise StoreMismatch(
            f"{url.place} has schema {version}; this ledgerd knows schema {SCHEMA_VERSION}", hint=hint
        )
    if url.buckets not in (None, buckets):
        raise StoreMismatch(
            f"{url.place} was made with {buckets} buckets, not with {url.buckets}",
            hint="Leave `buckets` away; to change their number, copy the ledger with `ledgerd copy`.",
        )
    return Founded(ledger_id, buckets)


async def _found(connection: Connection, url: PostgresUrl, now_ns: int) -> Founded:
    founded = Founded(secrets.token_hex(8), url.buckets or DEFAULT_BUCKETS)
    await connection.execute(
        "INSERT INTO ledger (bucket, ledger_id, schema_version, buckets, created_at) VALUES (0, $1, $2, $3, $4)",
        founded.ledger_id,
        SCHEMA_VERSION,
        founded.buckets,
        now_ns,
    )
    for bucket in range(founded.buckets):
        await connection.execute(
            "INSERT INTO counters (bucket, moves, position, seal, link, streams, roots)"
            " VALUES ($1, 0, 0, 0, $2, 0, 0)",
            bucket,
            sealing.first_link(founded.ledger_id, bucket),
        )
    return founded


def _script(name: str) -> str:
    return (files("ledger.store") / "schema" / f"postgres_{name}.sql").read_text()
