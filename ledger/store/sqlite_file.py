"""The file of a SQLite ledger: who may open it, what it must be, how it is opened and brought up to date."""

from __future__ import annotations

import fcntl
import os
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import aiosqlite

from ledger.errors import StorageError, StorageFull, StoreLocked, StoreMismatch
from ledger.store import sealing

Statement = tuple[str, Sequence[Any]]

APPLICATION_ID = 0x6C656467  # "ledg", so that a foreign file is told apart
SCHEMA_VERSION = 1
WAL_BYTES_KEPT = 64 * 2**20


def ddl() -> str:
    """The SQL that makes a store, all its migrations in order."""
    return "\n".join(_migration(version) for version in range(1, SCHEMA_VERSION + 1))


def _migration(version: int) -> str:
    return (files("ledger.store") / "schema" / f"sqlite_{version:04}.sql").read_text()


@contextmanager
def driver_errors(path: Path) -> Iterator[None]:
    """Turns the driver's errors into the ledger's."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            raise StorageFull(f"the disk of {path} is full") from error
        if code == sqlite3.SQLITE_NOTADB:
            raise StoreMismatch(f"{path} is not a SQLite file") from error
        raise StorageError(f"{path}: {error}") from error


class FileLock:
    """Holds a ledger's file for one server, by a lock that the kernel drops when the process ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lock_path = path.with_name(path.name + ".lock")
        try:
            self._fd = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StorageError(f"cannot write beside {path}: {error.strerror}") from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(self._fd, 40).decode("ascii", "replace").strip()
            os.close(self._fd)
            raise StoreLocked(f"{path} is held by another ledgerd (process {holder or 'unknown'})") from error
        os.ftruncate(self._fd, 0)
        os.write(self._fd, str(os.getpid()).encode())

    def release(self) -> None:
        os.close(self._fd)


class Database(aiosqlite.Connection):
    """A connection in autocommit: every transaction is begun and ended here."""

    async def transact(self, statements: Sequence[Statement]) -> None:
        """All of them in one transaction, or none, in one visit to the driver's thread.

        They must not be queued one by one: where SQLite rolls back by itself (on a full disk), those still queued
        would run in autocommit."""
        await self._execute(_transact, self._conn, statements)  # type: ignore[no-untyped-call]

    async def fetch_up_to(self, sql: str, values: Sequence[Any], column: int, bytes_max: int) -> list[Any]:
        """The rows of a query, up to the one with which what stands in `column` weighs `bytes_max` together."""
        rows: list[Any] = await self._execute(_fetch_up_to, self._conn, sql, values, column, bytes_max)  # type: ignore[no-untyped-call]
        return rows

    async def fetch_each(self, queries: Sequence[Statement]) -> list[list[Any]]:
        """The rows of each query, in one visit to the driver's thread."""
        found: list[list[Any]] = await self._execute(_fetch_each, self._conn, queries)  # type: ignore[no-untyped-call]
        return found


def _fetch_up_to(db: sqlite3.Connection, sql: str, values: Sequence[Any], column: int, bytes_max: int) -> list[Any]:
    rows: list[Any] = []
    for row in db.execute(sql, values):
        rows.append(row)
        bytes_max -= len(row[column])
        if bytes_max <= 0:
            break
    return rows


def _fetch_each(db: sqlite3.Connection, queries: Sequence[Statement]) -> list[list[Any]]:
    return [db.execute(sql, values).fetchall() for sql, values in queries]


def _transact(db: sqlite3.Connection, statements: Sequence[Statement]) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        for sql, values in statements:
            db.execute(sql, values)
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


async def connect(path: Path, *, read_only: bool = False) -> Database:
    target = f"file:{_uri_path(path)}?mode={'ro' if read_only else 'rwc'}"

    def connector() -> sqlite3.Connection:
        return sqlite3.connect(target, uri=True, isolation_level=None, cached_statements=256)

    with driver_errors(path):
        db = Database(connector, iter_chunk_size=64)
        await db
    try:
        with driver_errors(path):
            await db.execute_fetchall("PRAGMA busy_timeout = 5000")
            await db.execute_fetchall("PRAGMA synchronous = FULL")
            if read_only:
                await db.execute_fetchall("PRAGMA query_only = 1")
    except BaseException:
        await db.close()
        raise
    return db


async def prepare(db: Database, path: Path, now_ns: int) -> None:
    """Makes a fresh store, or brings an older one up to date; refuses a foreign or a newer one, unchanged."""
    with driver_errors(path):
        found = await check(db, path)
        await db.execute_fetchall("PRAGMA journal_mode = WAL")
        await db.execute_fetchall(f"PRAGMA journal_size_limit = {WAL_BYTES_KEPT}")
        for version in range(found + 1, SCHEMA_VERSION + 1):
            await db.transact(
                [
                    *[(statement, ()) for statement in _statements(_migration(version))],
                    *(_founding(now_ns) if version == 1 else ()),
                    (f"PRAGMA user_version = {version}", ()),
                ]
            )


async def check(db: aiosqlite.Connection, path: Path) -> int:
    """The schema version of the file, 0 for an empty one. Raises StoreMismatch; changes nothing."""
    with driver_errors(path):
        application_id = await scalar(db, "PRAGMA application_id")
        version = await scalar(db, "PRAGMA user_version")
        tables = await scalar(db, "SELECT count(*) FROM sqlite_schema")
    if application_id == 0 and version == 0 and tables == 0:
        return 0
    if application_id != APPLICATION_ID:
        raise StoreMismatch(f"{path} is a SQLite file of another program", hint="Name another file with --store.")
    if version > SCHEMA_VERSION:
        raise StoreMismatch(
            f"{path} has schema {version}; this ledgerd knows schemas up to {SCHEMA_VERSION}",
            hint="Run a newer ledgerd on it.",
        )
    return version


async def scalar(db: aiosqlite.Connection, sql: str) -> int:
    rows = list(await db.execute_fetchall(sql))
    return int(rows[0][0])


def _founding(now_ns: int) -> list[Statement]:
    ledger_id = secrets.token_hex(8)
    return [
        (f"PRAGMA application_id = {APPLICATION_ID}", ()),
        ("INSERT INTO ledger VALUES (?, ?)", (ledger_id, now_ns)),
        ("INSERT INTO counters VALUES (0, 0, 0, ?)", (sealing.first_link(ledger_id, 0),)),
    ]


def _statements(script: str) -> list[str]:
    lines = [line.partition("--")[0].rstrip() for line in script.splitlines()]
    return [statement for statement in "\n".join(lines).split(";") if statement.strip()]


def _uri_path(path: Path) -> str:
    return str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
