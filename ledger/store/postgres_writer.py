"""The writer of one bucket of a PostgreSQL ledger: concurrent appends of this server share a transaction.

Why it is safe, with any number of servers. A transaction first locks its bucket's counter row, so in a bucket one
transaction runs at a time, and positions are gapless and appear in order. What this server remembers of the bucket
holds only while the row's `moves` is what it was after this server's last commit; otherwise it is read again behind
the lock. Each append is decided behind the lock, in the order of its call; whether an event is new is read from the
table unless its seq lies above everything its stream holds; the unique constraint on (bucket, stream_n, seq) stands
behind both. A new stream takes its place in the same transaction, and a place is taken once in the whole ledger.

An append is answered after COMMIT. Until COMMIT was sent, a failed transaction has left nothing, and is tried again.
If the connection is lost after that, nobody knows whether it went through: the senders are told so, and send again,
and what is stored by then is a duplicate.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from ledger.errors import LedgerError, StorageError
from ledger.events.model import NewEvent
from ledger.store import sealing
from ledger.store.base import Write, Written
from ledger.store.deciding import decide
from ledger.store.judging import Held
from ledger.store.postgres_database import GONE, UNDONE, Connection, Database, end, undo
from ledger.store.postgres_places import Places, PlaceTaken
from ledger.store.postgres_script import Counters, insert_losers, insert_roots, insert_streams, tallied, written
from ledger.store.staging import Group, KnownStream

_GROUP_EVENTS_MAX = 8_000
_STREAMS_KNOWN_MAX = 20_000
_TALLIES_KEPT_NS = 1_000_000_000  # counts of deliveries are written this often

# The bucket, the positions `first` to `last` (none where last < first) and the roots that moved
Committed = Callable[[int, int, int, frozenset[str]], None]

_EVENT_COLUMNS = (
    "bucket",
    "position",
    "stream_n",
    "seq",
    "root_n",
    "decisive",
    "at",
    "recorded_at",
    "digest",
    "kind",
    "actor",
    "extra",
    "payload",
)


class Pending(msgspec.Struct):
    writes: Sequence[Write]
    answer: asyncio.Future[tuple[Written, ...]]


Answer = tuple[Written, ...] | LedgerError | PlaceTaken


class FateUnknown(Exception):
    """The connection was lost while COMMIT was under way."""


class BucketWriter:
    """Runs from its making on. `position` is where the bucket stood after this server's last transaction.

    `tallies` are deliveries that were counted and not yet written, by stream number. Whoever adds them to what the
    table holds has `tallying` meanwhile, so that each is counted once; after a failover some may be counted twice."""

    def __init__(
        self, bucket: int, database: Database, places: Places, clock: Callable[[], int], committed: Committed
    ) -> None:
        self.bucket = bucket
        self.tallies: dict[int, list[int]] = {}
        self.tallying = asyncio.Lock()
        self._tallied_at = 0
        self._database = database
        self._places = places
        self._clock = clock
        self._committed = committed
        self._waiting: deque[Pending] = deque()
        self._wake = asyncio.Event()
        self._closing = False
        self._counters: Counters | None = None  # None: to be read behind the next lock
        self._known: dict[str, KnownStream] = {}
        self._roots: dict[str, int] = {}
        self.position = 0
        self._task = asyncio.create_task(self._run(), name=f"ledger writer {bucket}")

    def append(self, writes: Sequence[Write]) -> asyncio.Future[tuple[Written, ...]]:
        """Queues an append. Its answer may be PlaceTaken, beside what a Store's append raises."""
        if self._closing:
            raise StorageError(f"{self._database.place} is closed")
        pending = Pending(writes, asyncio.get_running_loop().create_future())
        self._waiting.append(pending)
        self._wake.set()
        return pending.answer

    async def stop(self) -> None:
        """Finishes what is waiting, then ends."""
        self._closing = True
        self._wake.set()
        await self._task

    async def write_tallies(self) -> None:
        """Writes what was counted, if it has waited long enough or the writer is stopping. Raises StorageError."""
        now = self._clock()
        if not self.tallies or not (self._closing or now - self._tallied_at > _TALLIES_KEPT_NS):
            return
        async with self.tallying:
            tallies, self.tallies, self._tallied_at = self.tallies, {}, now
            try:
                await self._database.put(tallied(self.bucket, tallies))
            except StorageError:
                self._count(tallies)
                raise

    async def _run(self) -> None:
        while self._waiting or not self._closing:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                await self._serve(self._take())

    def _take(self) -> list[Pending]:
        taken, events = [], 0
        while self._waiting and events < _GROUP_EVENTS_MAX:
            taken.append(self._waiting.popleft())
            events += sum(len(write.events) for write in taken[-1].writes)
        return taken

    async def _serve(self, taken: list[Pending]) -> None:
        try:
            answers = await self._database.again(lambda: self._transact(taken))
        except PlaceTaken as error:
            self._part(taken, error)
        except FateUnknown:
            lost = f"the connection to {self._database.place} was lost during COMMIT: it may or may not be stored"
            _refuse(taken, StorageError(lost))
        except asyncio.CancelledError:
            _refuse(taken, StorageError(f"{self._database.place} was closed"))
            raise
        except Exception as error:  # whatever it was, each sender hears it and sends again
            _refuse(taken, error)
        else:
            for pending, answer in answers:
                if not pending.answer.done():  # its request may have been cut off
                    if isinstance(answer, Exception):
                        pending.answer.set_exception(answer)
                    else:
                        pending.answer.set_result(answer)

    def _part(self, taken: Iterable[Pending], error: PlaceTaken) -> None:
        """Sends back what names the stream that lies elsewhere; the others go on."""
        elsewhere = [one for one in taken if any(write.stream == error.stream for write in one.writes)]
        _refuse(elsewhere, error)
        self._waiting.extendleft(reversed([one for one in taken if one not in elsewhere]))

    def _check_places(self, writes: Sequence[Write], group: Group) -> None:
        """An append that followed an opening that then failed may open its stream in another bucket. Raises
        PlaceTaken."""
        for write in writes:
            new = write.stream not in self._known and write.stream not in group.streams
            if new and write.opening is not None and self._places.bucket_of(write.opening.root) != self.bucket:
                raise PlaceTaken(write.stream)

    async def _transact(self, taken: list[Pending]) -> list[tuple[Pending, Answer]]:
        """One try at one transaction."""
        async with self._database.connection() as connection:
            try:
                counters = await self._lock(connection)
                group = Group(counters.position, counters.streams, counters.roots, self._clock())
                tables = _Tables(self, connection)
                await tables.prefetch(taken)
                answers: list[tuple[Pending, Answer]] = []
                for pending in taken:
                    try:
                        self._check_places(pending.writes, group)
                        answers.append((pending, await decide(pending.writes, group, tables)))
                    except (LedgerError, PlaceTaken) as error:
                        answers.append((pending, error))
                if group.writes_something:
                    await self._write(connection, group)
                    await self._commit(connection, group, counters)
                else:
                    await end(connection)
                self.position = group.position
            except BaseException:
                self._forget()
                await undo(connection)
                raise
        self._count(group.tallies)
        return answers

    async def _lock(self, connection: Connection) -> Counters:
        """Begins a transaction and locks the bucket, in one round trip where nobody else has written to it."""
        if self._counters is not None:
            status = await connection.execute(self._counters.lock())
            if status == "SELECT 1":
                return self._counters
            self._forget()
        else:
            await connection.execute("BEGIN")
        row = await connection.fetchrow(
            "SELECT moves, position, seal, link, streams, roots FROM counters WHERE bucket = $1 FOR UPDATE",
            self.bucket,
        )
        assert row is not None  # noqa: S101 — every bucket was founded
        self._counters = Counters(self.bucket, *row)
        return self._counters

    def _forget(self) -> None:
        self._counters = None
        self._known.clear()
        self._roots.clear()

    async def _write(self, connection: Connection, group: Group) -> None:
        """All but the small fixed statements that `_commit` sends along with COMMIT."""
        if group.roots:
            await insert_roots(connection, self.bucket, group)
        if group.opened:
            await self._places.take(connection, {name: group.streams[name].root for name in group.opened})
            await insert_streams(connection, self.bucket, group)
        if group.losers:
            await insert_losers(connection, self.bucket, group)
        if group.rows:
            bucket = self.bucket
            await connection.copy_records_to_table(
                "events", columns=_EVENT_COLUMNS, records=[(bucket, *row) for row in group.rows]
            )

    async def _commit(self, connection: Connection, group: Group, counters: Counters) -> None:
        link = sealing.link(counters.link, group.sealed) if group.rows else counters.link
        now = counters.after(group, link)
        try:
            await self._end(connection, counters, now, group)
        except UNDONE:
            raise
        except GONE as error:
            raise FateUnknown from error
        self._remember(group, now)
        self._committed(
            self.bucket, group.first, group.position, frozenset(known.root for known in group.streams.values())
        )

    async def _end(self, connection: Connection, before: Counters, now: Counters, group: Group) -> None:
        """Sends the end of the transaction, with the tallies where they are due and nobody is reading them."""
        due = self.tallies and group.now_ns - self._tallied_at > _TALLIES_KEPT_NS
        if not due or self.tallying.locked():
            await end(connection, written(before, now, group, {}))
            return
        async with self.tallying:
            await end(connection, written(before, now, group, self.tallies))
            self.tallies, self._tallied_at = {}, group.now_ns

    def _remember(self, group: Group, now: Counters) -> None:
        self._counters = now
        if len(self._known) + len(group.streams) > _STREAMS_KNOWN_MAX:
            self._known.clear()
            self._roots.clear()
        self._roots.update(group.roots)
        self._known.update(group.streams)
        self._places.learn(dict.fromkeys(group.opened, self.bucket))

    def _count(self, tallies: dict[int, list[int]]) -> None:
        for stream_n, counts in tallies.items():
            held = self.tallies.get(stream_n, [0] * len(counts))
            self.tallies[stream_n] = [a + b for a, b in zip(held, counts, strict=True)]


class _Tables:
    """The bucket as its transaction sees it: what the writer remembers, and behind it the tables."""

    def __init__(self, writer: BucketWriter, connection: Connection) -> None:
        self._bucket = writer.bucket
        self._known = writer._known
        self._roots = writer._roots
        self._connection = connection
        self._absent: set[str] = set()

    async def prefetch(self, taken: Iterable[Pending]) -> None:
        """Reads in one go what is not known of the streams."""
        wanted = {write.stream for pending in taken for write in pending.writes} - self._known.keys()
        if not wanted:
            return
        rows = await self._connection.fetch(
            "SELECT stream_n, stream, root_n, root, task_id, saddle, contiguous, high_seq, events, last_recorded_at"
            " FROM streams JOIN roots USING (bucket, root_n) WHERE bucket = $1 AND stream = ANY($2)",
            self._bucket,
            list(wanted),
        )
        for row in rows:
            known = KnownStream(*row)
            self._known[known.stream] = known

    async def known(self, stream: str) -> KnownStream | None:
        return self._known.get(stream)

    async def root_n(self, root: str) -> int | None:
        if (found := self._roots.get(root)) is None:
            found = await self._connection.fetchval(
                "SELECT root_n FROM roots WHERE bucket = $1 AND root = $2", self._bucket, root
            )
            if found is not None:
                self._roots[root] = found
        return found

    async def held(self, known: KnownStream, events: Sequence[NewEvent]) -> dict[int, Held]:
        rows = await self._slots("seq, digest", known, {event.seq for event in events})
        held = {seq: Held(digest) for seq, digest in rows}
        differ = {event.seq for event in events if event.seq in held and held[event.seq].digest != event.digest}
        if differ:
            rows = await self._slots("seq, digest, kind, actor, payload", known, differ)
            held.update({seq: Held(*content) for seq, *content in rows})
        return held

    async def _slots(self, columns: str, known: KnownStream, seqs: set[int]) -> list[Any]:
        return await self._connection.fetch(
            f"SELECT {columns} FROM events WHERE bucket = $1 AND stream_n = $2 AND seq = ANY($3)",
            self._bucket,
            known.stream_n,
            sorted(seqs),
        )


def _refuse(taken: Iterable[Pending], error: BaseException) -> None:
    for pending in taken:
        if not pending.answer.done():
            pending.answer.set_exception(error)
