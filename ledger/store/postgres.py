"""The store on PostgreSQL: one ledger, any number of servers in front of it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from ledger.errors import StorageError
from ledger.store import postgres_schema
from ledger.store.base import Appended, Checkpoint, Heads, Listener, Token, Write
from ledger.store.judging import unknown_session
from ledger.store.postgres_database import Database
from ledger.store.postgres_places import Places, PlaceTaken
from ledger.store.postgres_reading import PostgresReading
from ledger.store.postgres_schema import Founded
from ledger.store.postgres_telling import Teller
from ledger.store.postgres_url import parse_url
from ledger.store.postgres_writer import BucketWriter

_TRIES = 10  # each time another server has opened the stream first, somewhere else
_CHECKPOINT = "INSERT INTO checkpoints (bucket, name, version, position, state) VALUES ($1, $2, $3, $4, $5)"
_TOKEN = (
    "INSERT INTO tokens (bucket, id, role, name, hash, created_at, expires_at, revoked_at)"  # noqa: S105 — a statement
    " VALUES (0, $1, $2, $3, $4, $5, $6, $7)"
)


class PostgresStore(PostgresReading):
    """See `ledger.store.base.Store`. Made by `open`."""

    def __init__(self, database: Database, founded: Founded, clock: Callable[[], int]) -> None:
        self.ledger_id = founded.ledger_id
        self.buckets = founded.buckets
        super().__init__(database, Places(database, self.bucket_of), founded.buckets)
        self._clock = clock
        self._writers: dict[int, BucketWriter] = {}
        self._teller = Teller((0,) * founded.buckets, self.heads, self.roots_between)
        self._writable = False
        self._closed = False
        self._placing = asyncio.Lock()  # first come, first served: appends are decided in the order of their calls

    @classmethod
    async def open(
        cls, url: str, *, clock: Callable[[], int] = time.time_ns, read_only: bool = False
    ) -> PostgresStore:
        """Opens the ledger at `url`, made if it is not there (unless `read_only`, which may stand on a standby).

        Raises StorageError where no host takes writes, StoreMismatch for a foreign schema, another schema version or
        another number of buckets, InvalidField for a URL that cannot be."""
        parsed = parse_url(url)
        database = await Database.open(parsed, read_only=read_only)
        try:
            if read_only:
                return cls(database, await postgres_schema.check(database, parsed), clock)
            store = cls(database, await postgres_schema.prepare(database, parsed, clock()), clock)
            await store._start()
        except BaseException:
            await database.close()
            raise
        return store

    async def _start(self) -> None:
        self._writable = True
        self._teller = Teller(await self.heads(), self.heads, self.roots_between)
        self._teller.start(self._write_tallies)

    async def close(self) -> None:
        self._closed = True
        for writer in self._writers.values():
            await writer.stop()
        await self._teller.stop()
        with contextlib.suppress(StorageError):  # counts beside the log: not worth failing a stop for
            await self._write_tallies()
        await self._database.close()

    def bucket_of(self, root: str) -> int:
        return int.from_bytes(hashlib.sha256(root.encode()).digest()[:8]) % self.buckets

    # Appending

    async def append(self, writes: Sequence[Write]) -> Appended:
        if self._closed or not self._writable:
            raise StorageError(f"{self._database.place} is closed, or open for reading only")
        if len({write.stream for write in writes}) < len(writes):
            raise ValueError("an append names a stream once")
        if not writes:
            return Appended((), await self.heads())
        for _ in range(_TRIES):
            async with self._placing:
                bucket = await self._bucket_of_all(writes)
                opening = [write.stream for write in writes if write.opening is not None]
                self._places.open_soon(opening, bucket)
                writer = self._writer(bucket)
                answer = writer.append(writes)
            try:
                written = await answer
            except PlaceTaken:
                continue
            finally:
                self._places.open_no_more(opening)
            return Appended(written, self._heads_behind(writer))
        raise StorageError(f"{self._database.place}: the streams of one append are opened elsewhere again and again")

    async def _bucket_of_all(self, writes: Sequence[Write]) -> int:
        """The bucket of all writes. One of a stream that is not there is refused in whatever bucket it is sent to."""
        places = await self._places.buckets([write.stream for write in writes])
        asked = {write.stream: self.bucket_of(write.opening.root) for write in writes if write.opening is not None}
        buckets = set({**asked, **places}.values())
        if len(buckets) > 1:
            raise ValueError(f"the writes of one append lie in several buckets: {sorted(buckets)}")
        if not buckets:
            raise unknown_session(writes[0].stream)
        return buckets.pop()

    def _writer(self, bucket: int) -> BucketWriter:
        if bucket not in self._writers:
            self._writers[bucket] = BucketWriter(
                bucket, self._database, self._places, self._clock, self._teller.committed
            )
        return self._writers[bucket]

    def _heads_behind(self, writer: BucketWriter) -> Heads:
        """The heads as last told, and this writer's own bucket as it stands after its last commit."""
        told = self._teller.told
        own = max(told[writer.bucket], writer.position)
        return (*told[: writer.bucket], own, *told[writer.bucket + 1 :])

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        return self._teller.subscribe(listener)

    async def _write_tallies(self) -> None:
        for writer in list(self._writers.values()):
            await writer.write_tallies()

    @contextlib.asynccontextmanager
    async def _unwritten(self, bucket: int) -> AsyncIterator[Mapping[int, list[int]]]:
        writer = self._writers.get(bucket)
        if writer is None:
            yield {}
            return
        async with writer.tallying:
            yield writer.tallies

    # Beside the log

    async def load_checkpoint(self, name: str, version: str) -> Checkpoint | None:
        rows = await self._database.rows(
            "SELECT version, position, state FROM checkpoints WHERE bucket = $1 AND name = $2 AND version = $3",
            self.bucket_of(name),
            name,
            version,
        )
        return Checkpoint(*rows[0]) if rows else None

    async def save_checkpoint(self, name: str, checkpoint: Checkpoint) -> None:
        await self._database.put(
            f"{_CHECKPOINT} ON CONFLICT (bucket, name) DO UPDATE"
            " SET version = excluded.version, position = excluded.position, state = excluded.state",
            self.bucket_of(name),
            name,
            checkpoint.version,
            checkpoint.position,
            checkpoint.state,
        )

    async def tokens(self) -> list[Token]:
        rows = await self._database.rows(
            "SELECT id, role, name, hash, created_at, expires_at, revoked_at FROM tokens"
            " WHERE bucket = 0 ORDER BY created_at, id"
        )
        return [Token(*row) for row in rows]

    async def put_token(self, token: Token) -> None:
        await self._database.put(
            f"{_TOKEN} ON CONFLICT (bucket, id) DO UPDATE SET role = excluded.role, name = excluded.name,"
            " hash = excluded.hash, created_at = excluded.created_at, expires_at = excluded.expires_at,"
            " revoked_at = excluded.revoked_at",
            token.id,
            token.role,
            token.name,
            token.hash,
            token.created_at,
            token.expires_at,
            token.revoked_at,
        )
