"""The file of an outbox: a small ledger on SQLite that several processes write to, each in short transactions.

It has the tables of a ledger (`ledgerd export` can read it) and a few of its own. Unlike a server's store it is held
by nobody: SQLite's own locks order the writers, and every transaction is durable when it ends.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ledger.errors import StorageError, StorageFull, StoreMismatch
from ledger.store import sealing

VERSION = 2
PAGE_BYTES = 4096
BUSY_MS_MAX = 30_000  # how long a writer waits for the others

_SCHEMA = Path(__file__).with_name("schema")
_WAL_BYTES_KEPT = 16 * 2**20

Connection = sqlite3.Connection


class OutboxFile:
    """One connection to the outbox at `path`, made with its folder if it is not there. Threads may share it.

    The file grows to `bytes_max` at most; beyond, a transaction raises StorageFull. Without `durable` a transaction
    may be lost when the machine stops, but never in part. Raises StoreMismatch for a file that is no outbox, and
    StorageError for one that cannot be opened. Must not be carried over a fork.
    """

    def __init__(self, path: Path, *, bytes_max: int, durable: bool = True) -> None:
        self.path = path
        self._lock = threading.Lock()
        with self._errors():
            if not path.exists():
                _make(path)
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            try:
                self._db.execute(f"PRAGMA busy_timeout = {BUSY_MS_MAX}")
                _check(self._db, path)
                self._db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                self._db.execute(f"PRAGMA max_page_count = {bytes_max // PAGE_BYTES}")
                self._db.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES_KEPT}")
            except BaseException:
                self._db.close()
                raise

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """BEGIN IMMEDIATE … COMMIT; rolled back whatever goes wrong inside. Raises StorageError, StorageFull."""
        with self._lock, self._errors():
            db = self._db
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # SQLite has rolled back by itself, on a full disk for one
                    db.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """For statements that change nothing. Raises StorageError."""
        with self._lock, self._errors():
            yield self._db

    def close(self) -> None:
        with self._lock:
            self._db.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turns the errors of the driver and of the file system into the ledger's."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code == sqlite3.SQLITE_FULL:
                raise StorageFull(f"{self.path} is full, or its disk is") from error
            if code == sqlite3.SQLITE_NOTADB:
                raise _no_outbox(self.path) from error
            raise StorageError(f"{self.path}: {error}", hint="Make the outbox's folder writable.") from error
        except OSError as error:
            raise StorageError(f"{self.path}: {error.strerror}", hint="Make the outbox's folder writable.") from error


def _make(path: Path) -> None:
    """Makes the file whole beside its place and puts it there in one step: whoever else makes it meanwhile is met by
    a file that is there, never by half of one."""
    from ledger.store.sqlite_file import APPLICATION_ID, SCHEMA_VERSION, ddl

    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as db:
            ledger_id = secrets.token_hex(8)
            db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            db.executescript(ddl() + "".join(_step(version) for version in range(1, VERSION + 1)))
            db.execute("INSERT INTO ledger VALUES (?, ?)", (ledger_id, time.time_ns()))
            db.execute("INSERT INTO counters VALUES (0, 0, 0, ?)", (sealing.first_link(ledger_id, 0),))
            db.execute("INSERT INTO outbox VALUES (?)", (VERSION,))
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            db.execute("PRAGMA journal_mode = WAL")
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()


def _check(db: Connection, path: Path) -> None:
    if not db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'outbox'").fetchone()[0]:
        raise _no_outbox(path)
    [version] = db.execute("SELECT version FROM outbox").fetchone()
    if version < VERSION:
        version = _bring_up(db)
    if version != VERSION:
        raise StoreMismatch(
            f"{path} is an outbox of version {version}, and this ledgerd knows version {VERSION}",
            hint="Use the ledgerd version that wrote it, or name another file with LEDGERD_OUTBOX.",
        )


def _bring_up(db: Connection) -> int:
    """Makes an outbox of an older version one of this; whoever else does so meanwhile is waited for."""
    db.execute("BEGIN IMMEDIATE")
    try:
        [version] = db.execute("SELECT version FROM outbox").fetchone()
        for step in range(version + 1, VERSION + 1):
            for statement in _step(step).split(";"):
                db.execute(statement)
            db.execute("UPDATE outbox SET version = ?", (step,))
        db.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise
    return max(int(version), VERSION)


def _step(version: int) -> str:
    return (_SCHEMA / f"outbox_{version:04}.sql").read_text(encoding="utf-8")


def _no_outbox(path: Path) -> StoreMismatch:
    return StoreMismatch(f"{path} is no outbox", hint="Name another file with LEDGERD_OUTBOX.")
