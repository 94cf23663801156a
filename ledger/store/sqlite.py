"""The store on SQLite: the default. One process, one file, no set-up."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ledger.errors import StoreMismatch
from ledger.events.model import END_SEQ, Recorded
from ledger.store import sqlite_file
from ledger.store.base import (
    Appended,
    Checkpoint,
    Delivery,
    DeliveryTotals,
    Heads,
    Listener,
    Loser,
    Seal,
    StreamInfo,
    Token,
    Write,
)
from ledger.store.sqlite_file import Database, FileLock, driver_errors
from ledger.store.sqlite_writer import Writer

_READERS = 3
_READ_BYTES_MAX = 16 * 2**20
_RECORDED = (
    "SELECT e.position, 0, s.stream, e.seq, e.kind, e.actor, e.at, e.recorded_at, s.task_id, r.root, e.payload,"
    " e.digest, e.extra"
)
_PAYLOAD_COLUMN = 10
_JOINED = " JOIN streams s USING (stream_n) JOIN roots r ON r.root_n = e.root_n "
_STREAM_INFO = (
    "SELECT stream, task_id, root, saddle, contiguous, high_seq, events, last_recorded_at"
    " FROM streams JOIN roots USING (root_n) "
)


class SqliteStore:
    """See `ledger.store.base.Store`. Made by `open`; holds its file until `close`."""

    buckets = 1

    def __init__(self, path: Path, lock: FileLock | None, writer_db: Database | None) -> None:
        self._path = path
        self._lock = lock
        self._writer_db = writer_db
        self._readers: asyncio.Queue[Database] = asyncio.Queue()
        self._readers_open = 0
        self._listeners: list[Listener] = []
        self.ledger_id = ""

    @classmethod
    async def open(
        cls,
        path: Path | str,
        *,
        clock: Callable[[], int] = time.time_ns,
        read_only: bool = False,
        page_count_max: int | None = None,
    ) -> SqliteStore:
        """Opens the ledger at `path`, made if it is not there (unless `read_only`, which takes no lock and may stand
        beside a running server). `page_count_max` bounds the file, in pages of 4 KiB.

        Raises StoreLocked where another server holds it, StoreMismatch for a foreign or newer file."""
        path = Path(path).expanduser().resolve()
        if read_only:
            return await cls._open_read_only(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path)
        try:
            db = await sqlite_file.connect(path)
            store = cls(path, lock, db)
            try:
                await sqlite_file.prepare(db, path, clock())
                if page_count_max is not None:
                    await db.execute_fetchall(f"PRAGMA max_page_count = {page_count_max}")
                await store._start(db, clock)
            except BaseException:
                await db.close()
                raise
        except BaseException:
            lock.release()
            raise
        return store

    @classmethod
    async def _open_read_only(cls, path: Path) -> SqliteStore:
        if not path.exists():
            raise StoreMismatch(f"there is no ledger at {path}", hint="Name the ledger's file with --store.")
        store = cls(path, None, None)
        try:
            await store._open_readers()
            async with store._reading() as db:
                if await sqlite_file.check(db, path) != sqlite_file.SCHEMA_VERSION:
                    raise StoreMismatch(f"{path} has an older schema", hint="Start a server on it once.")
            await store._load_id()
        except BaseException:
            await store.close()
            raise
        return store

    async def _start(self, writer_db: Database, clock: Callable[[], int]) -> None:
        self._writer = Writer(writer_db, self._path, clock, self._announce)
        await self._writer.start()
        await self._open_readers()
        await self._load_id()

    async def _open_readers(self) -> None:
        for _ in range(_READERS):
            self._readers.put_nowait(await sqlite_file.connect(self._path, read_only=True))
            self._readers_open += 1

    async def _load_id(self) -> None:
        [(self.ledger_id,)] = await self._rows("SELECT ledger_id FROM ledger")

    async def close(self) -> None:
        if self._writer_db is not None:
            await self._writer.stop()
            await self._writer_db.close()
        while self._readers_open:  # also those that are read from just now: each has a thread that only this ends
            await (await self._readers.get()).close()
            self._readers_open -= 1
        if self._lock is not None:
            self._lock.release()

    def bucket_of(self, root: str) -> int:
        return 0

    # Appending

    async def append(self, writes: Sequence[Write]) -> Appended:
        return await self._writer.append(writes)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def _announce(self, roots: frozenset[str]) -> None:
        for listener in list(self._listeners):
            listener(roots, self._writer.heads)

    # Reading

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[Database]:
        db = await self._readers.get()
        try:
            with driver_errors(self._path):
                yield db
        finally:
            self._readers.put_nowait(db)

    async def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        async with self._reading() as db:
            return list(await db.execute_fetchall(sql, values))

    async def _recorded(self, sql: str, values: Sequence[Any]) -> list[Recorded]:
        """The events of a query, in memory that is bounded whatever their payloads weigh."""
        async with self._reading() as db:
            rows = await db.fetch_up_to(_RECORDED + sql, values, _PAYLOAD_COLUMN, _READ_BYTES_MAX)
        return [Recorded(*row) for row in rows]

    async def heads(self) -> Heads:
        [(position,)] = await self._rows("SELECT position FROM counters WHERE bucket = 0")
        return (position,)

    async def stream(self, stream: str) -> StreamInfo | None:
        rows = await self._rows(_STREAM_INFO + "WHERE stream = ?", (stream,))
        return _stream_info(rows[0]) if rows else None

    async def streams_of(self, root: str, *, after: str = "", limit: int = 1000) -> list[StreamInfo]:
        rows = await self._rows(
            _STREAM_INFO + "WHERE root = ? AND stream > ? ORDER BY stream LIMIT ?", (root, after, limit)
        )
        return [_stream_info(row) for row in rows]

    async def last_recorded_at(self, streams: Sequence[str]) -> dict[str, int]:
        rows = await self._rows(
            "SELECT stream, last_recorded_at FROM streams WHERE stream IN (SELECT value FROM json_each(?))",
            (json.dumps(list(streams)),),
        )
        return dict(rows)

    async def read_stream(
        self, stream: str, *, from_seq: int = -1, limit: int = 1000, backward: bool = False
    ) -> list[Recorded]:
        seqs = "e.seq <= ? ORDER BY e.seq DESC" if backward else "e.seq >= ? ORDER BY e.seq"
        return await self._recorded(
            f" FROM streams s JOIN events e USING (stream_n) JOIN roots r ON r.root_n = e.root_n"
            f" WHERE s.stream = ? AND {seqs} LIMIT ?",
            (stream, from_seq, limit),
        )

    async def read_root(self, root: str, *, after: int = 0, limit: int = 1000) -> list[Recorded]:
        return await self._recorded(
            " FROM roots r JOIN events e ON e.root_n = r.root_n JOIN streams s USING (stream_n)"
            " WHERE r.root = ? AND e.position > ? ORDER BY e.position LIMIT ?",
            (root, after, limit),
        )

    async def read_feed(self, after: Heads, *, limit: int = 1000, decisive: bool = False) -> list[Recorded]:
        source = "events e INDEXED BY events_decisive" if decisive else "events e"
        return await self._recorded(
            f" FROM {source}{_JOINED}WHERE e.position > ?{' AND e.decisive = 1' if decisive else ''}"
            " ORDER BY e.position LIMIT ?",
            (after[0], limit),
        )

    async def roots_moved(self, after: Heads, *, limit: int = 1000) -> list[str]:
        rows = await self._rows(
            "SELECT r.root FROM events e JOIN roots r USING (root_n) WHERE e.position > ?"
            " GROUP BY e.root_n ORDER BY max(e.position) DESC LIMIT ?",
            (after[0], limit),
        )
        return [root for (root,) in rows]

    async def gaps(self, stream: str, *, limit: int = 100) -> list[tuple[int, int]]:
        found = await self._rows(
            "SELECT high_seq + 1 - events"
            " + EXISTS (SELECT 1 FROM events e WHERE e.stream_n = s.stream_n AND seq = -1)"
            " + EXISTS (SELECT 1 FROM events e WHERE e.stream_n = s.stream_n AND seq = ?)"
            " FROM streams s WHERE stream = ?",
            (END_SEQ, stream),
        )
        if not found or found[0][0] == 0:  # as many as there are seqs: no need to walk them
            return []
        rows = await self._rows(
            "WITH arrived AS ("
            "  SELECT seq, lag(seq, 1, -1) OVER (ORDER BY seq) AS before FROM events"
            "  WHERE stream_n = (SELECT stream_n FROM streams WHERE stream = ?) AND seq BETWEEN 0 AND ?)"
            " SELECT before + 1, seq - 1 FROM arrived WHERE seq > before + 1 ORDER BY seq LIMIT ?",
            (stream, END_SEQ - 1, limit),
        )
        return [(first, last) for first, last in rows]

    async def losers(self, stream: str, *, limit: int = 100) -> list[Loser]:
        rows = await self._rows(
            "SELECT stream, seq, kind, actor, payload, digest, at, received_at"
            " FROM streams JOIN losers USING (stream_n) WHERE stream = ? ORDER BY seq, received_at LIMIT ?",
            (stream, limit),
        )
        return [Loser(*row) for row in rows]

    async def deliveries(self, root: str) -> list[Delivery]:
        rows = await self._rows(
            "SELECT stream, stream_n, deliveries, duplicates, conflicts, late, results_repeated"
            " FROM roots JOIN streams USING (root_n) LEFT JOIN deliveries USING (stream_n)"
            " WHERE root = ? ORDER BY stream",
            (root,),
        )
        unwritten = self._writer.tallies if self._writer_db is not None else {}
        counted = [
            Delivery(stream, *(a + (b or 0) for a, b in zip(unwritten.get(n, [0] * 5), counts, strict=True)))
            for stream, n, *counts in rows
        ]
        return [delivery for delivery in counted if delivery.deliveries]

    async def delivery_totals(self) -> list[DeliveryTotals]:
        unwritten = self._writer.tallies if self._writer_db is not None else {}
        rows = await self._rows(
            "WITH counted AS ("
            " SELECT stream_n, deliveries, duplicates, conflicts, late, results_repeated FROM deliveries"
            " UNION ALL SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5"
            " FROM json_each(?)),"
            " summed AS (SELECT stream_n, sum(deliveries) AS deliveries, sum(duplicates) AS duplicates,"
            " sum(conflicts) AS conflicts, sum(late) AS late, sum(results_repeated) AS results_repeated"
            " FROM counted GROUP BY stream_n)"
            " SELECT saddle, count(*), sum(events), ifnull(sum(deliveries), 0), ifnull(sum(duplicates), 0),"
            " ifnull(sum(conflicts), 0), ifnull(sum(late), 0), ifnull(sum(results_repeated), 0)"
            " FROM streams LEFT JOIN summed USING (stream_n) WHERE substr(stream, 1, 1) <> '@'"
            " GROUP BY saddle ORDER BY saddle",
            (json.dumps([[stream_n, *counts] for stream_n, counts in unwritten.items()]),),
        )
        return [DeliveryTotals(*row) for row in rows]

    async def seals(self, bucket: int, *, after: int = 0, limit: int = 1000) -> list[Seal]:
        rows = await self._rows(
            "SELECT 0, number, first, last, digest FROM seals WHERE number > ? ORDER BY number LIMIT ?",
            (after, limit),
        )
        return [Seal(*row) for row in rows]

    # Beside the log

    async def load_checkpoint(self, name: str, version: str) -> Checkpoint | None:
        rows = await self._rows(
            "SELECT version, position, state FROM checkpoints WHERE name = ? AND version = ?", (name, version)
        )
        return Checkpoint(*rows[0]) if rows else None

    async def save_checkpoint(self, name: str, checkpoint: Checkpoint) -> None:
        await self._writer.put(
            "INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?)",
            (name, checkpoint.version, checkpoint.position, checkpoint.state),
        )

    async def tokens(self) -> list[Token]:
        rows = await self._rows(
            "SELECT id, role, name, hash, created_at, expires_at, revoked_at FROM tokens ORDER BY created_at, id"
        )
        return [Token(*row) for row in rows]

    async def put_token(self, token: Token) -> None:
        await self._writer.put(
            "INSERT OR REPLACE INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                token.id,
                token.role,
                token.name,
                token.hash,
                token.created_at,
                token.expires_at,
                token.revoked_at,
            ),
        )


def _stream_info(row: Any) -> StreamInfo:
    stream, task_id, root, saddle, contiguous, high_seq, events, last_recorded_at = row
    return StreamInfo(stream, task_id, root, saddle, bool(contiguous), high_seq, events, last_recorded_at)
