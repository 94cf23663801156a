"""The one writer of a SQLite ledger: concurrent appends share a transaction.

Why it is safe. One task takes what is waiting, decides each append in the order of its call, and writes all that is
new in one transaction; an append is answered only after COMMIT has returned with `synchronous=FULL`. What is known of
streams is changed in memory only after that, so a transaction that fails leaves nothing behind. Whether an event is
new is read from the table itself unless its seq lies above everything its stream holds; the unique constraint on
(stream, seq) stands behind both. Duplicates need no transaction: what they repeat is durable already.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ledger.errors import LedgerError, SessionElsewhere, StorageError, StreamMoved
from ledger.events.model import NO_EVENTS, NewEvent
from ledger.store import sealing
from ledger.store.base import Appended, Heads, Opening, Write, Written
from ledger.store.judging import Held, Judged, all_new, held_by, judge, unknown_session
from ledger.store.sqlite_file import Database, Statement, driver_errors
from ledger.store.sqlite_group import Group, KnownStream

_GROUP_EVENTS_MAX = 8_000
_STREAMS_KNOWN_MAX = 50_000
_TALLIES_KEPT_NS = 1_000_000_000  # counts of duplicates alone are written this often

Answer = TypeVar("Answer")


class Pending(msgspec.Struct):
    writes: Sequence[Write]
    answer: asyncio.Future[Appended]


class Aside(msgspec.Struct):
    """A statement beside the log: a token, a checkpoint."""

    sql: str
    values: Sequence[Any]
    answer: asyncio.Future[None]


class Writer:
    def __init__(
        self,
        db: Database,
        path: Path,
        clock: Callable[[], int],
        on_commit: Callable[[frozenset[str]], None],
    ) -> None:
        self._db = db
        self._path = path
        self._clock = clock
        self._on_commit = on_commit
        self._waiting: deque[Pending] = deque()
        self._aside: deque[Aside] = deque()
        self._wake = asyncio.Event()
        self._closing = False
        self._known: dict[str, KnownStream] = {}
        self._roots: dict[str, int] = {}
        self.tallies: dict[int, list[int]] = {}  # counted, not yet written
        self._tallied_at = 0
        self.position = 0

    async def start(self) -> None:
        with driver_errors(self._path):
            [(self.position, self._seal, self._link)] = await self._db.execute_fetchall(
                "SELECT position, seal, link FROM counters WHERE bucket = 0"
            )
            [(self._stream_n,)] = await self._db.execute_fetchall("SELECT coalesce(max(stream_n), 0) FROM streams")
            [(self._root_n,)] = await self._db.execute_fetchall("SELECT coalesce(max(root_n), 0) FROM roots")
        self._task = asyncio.create_task(self._run(), name="ledger writer")

    async def stop(self) -> None:
        """Finishes what is waiting, then ends."""
        self._closing = True
        self._wake.set()
        await self._task
        if self.tallies:
            with contextlib.suppress(StorageError):  # counts beside the log: not worth failing a stop for
                await self._db.transact([self._tally_statement()])

    async def append(self, writes: Sequence[Write]) -> Appended:
        if self._closing:
            raise StorageError(f"{self._path} is closed")
        pending = Pending(writes, asyncio.get_running_loop().create_future())
        self._waiting.append(pending)
        self._wake.set()
        return await pending.answer

    async def put(self, sql: str, values: Sequence[Any]) -> None:
        """Runs one statement beside the log, durably, between two groups."""
        aside = Aside(sql, values, asyncio.get_running_loop().create_future())
        self._aside.append(aside)
        self._wake.set()
        await aside.answer

    @property
    def heads(self) -> Heads:
        return (self.position,)

    async def known(self, stream: str) -> KnownStream | None:
        """The stream as it stands after the last commit."""
        if (known := self._known.get(stream)) is not None:
            return known
        rows = await self._db.execute_fetchall(
            "SELECT stream_n, stream, root_n, root, task_id, saddle, contiguous, high_seq, events, last_recorded_at"
            " FROM streams JOIN roots USING (root_n) WHERE stream = ?",
            (stream,),
        )
        for row in rows:
            self._known[stream] = KnownStream(*row)
        return self._known.get(stream)

    async def _run(self) -> None:
        while self._waiting or self._aside or not self._closing:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting or self._aside:
                taken: list[Pending | Aside] = [self._aside.popleft()] if self._aside else list(self._take())
                try:
                    with driver_errors(self._path):
                        await self._serve(taken)
                except asyncio.CancelledError:
                    _refuse(taken, StorageError(f"{self._path} was closed"))
                    raise
                except Exception as error:  # whatever it was, each sender hears it and sends again
                    self._known.clear()
                    self._roots.clear()
                    _refuse(taken, error)

    def _take(self) -> Iterator[Pending]:
        events = 0
        while self._waiting and events < _GROUP_EVENTS_MAX:
            pending = self._waiting.popleft()
            events += sum(len(write.events) for write in pending.writes)
            yield pending

    async def _serve(self, taken: Iterable[Pending | Aside]) -> None:
        group = Group(self.position, self._stream_n, self._root_n, self._clock())
        answers: list[tuple[Pending, tuple[Written, ...]]] = []
        for pending in taken:
            if isinstance(pending, Aside):
                await self._db.transact([(pending.sql, pending.values)])
                _answer(pending.answer, None)
                continue
            try:
                answers.append((pending, await self._decide(pending.writes, group)))
            except LedgerError as error:
                _refuse([pending], error)
        if group.writes_something:
            await self._commit(group)
        elif self.tallies and group.now_ns - self._tallied_at > _TALLIES_KEPT_NS:
            await self._db.transact([self._tally_statement()])
            self._tallied(group.now_ns)
        self._count(group)
        for pending, written in answers:
            _answer(pending.answer, Appended(written, self.heads))

    # Deciding

    async def _decide(self, writes: Sequence[Write], group: Group) -> tuple[Written, ...]:
        if len({write.stream for write in writes}) < len(writes):
            raise ValueError("an append names a stream once")
        for write in writes:
            _check(write, group.streams.get(write.stream) or await self.known(write.stream))
        return tuple([await self._stage(write, group) for write in writes])

    async def _stage(self, write: Write, group: Group) -> Written:
        known = group.streams.get(write.stream)
        if known is None and (committed := await self.known(write.stream)) is not None:
            known = committed.copy()
        opened = known is None
        if known is None:
            if write.opening is None:
                raise unknown_session(write.stream)
            known = await self._open(write.stream, write.opening, group)
        opening = write.opening.event if write.opening is not None else None
        at_opening = await self._judge(known, [opening] if opening is not None else [], group)
        verdict = await self._judge(known, write.events, group)
        if write.events:
            group.tally(known.stream_n, verdict)
        return Written(
            stored=len(verdict.new),
            duplicates=verdict.duplicates,
            conflicts=tuple(event.seq for event in [*at_opening.losers, *verdict.losers]),
            high_seq=known.high_seq,
            opened=opened,
            task_id=known.task_id,
            root=known.root,
            contiguous=known.contiguous,
        )

    async def _open(self, stream: str, opening: Opening, group: Group) -> KnownStream:
        root_n = await self._root(opening.root, group)
        group.stream_n += 1
        known = group.streams[stream] = KnownStream(
            stream_n=group.stream_n,
            stream=stream,
            root_n=root_n,
            root=opening.root,
            task_id=opening.task_id,
            saddle=opening.saddle,
            contiguous=opening.contiguous,
            high_seq=-1,
            events=0,
            last_recorded_at=group.now_ns,
        )
        return known

    async def _root(self, root: str, group: Group) -> int:
        if (root_n := self._roots.get(root) or group.roots.get(root)) is not None:
            return root_n
        for (found,) in await self._db.execute_fetchall("SELECT root_n FROM roots WHERE root = ?", (root,)):
            self._roots[root] = found
            return int(found)
        group.root_n += 1
        group.roots[root] = group.root_n
        return group.root_n

    async def _judge(self, known: KnownStream, events: Sequence[NewEvent], group: Group) -> Judged:
        if all_new(events, known.high_seq) and (not events or events[0].seq >= 0 or known.events == 0):
            verdict = Judged(new=events)
        else:
            verdict = judge(events, await self._held(known, events, group), known.high_seq)
        if verdict.new:
            group.streams[known.stream] = known
            group.add(known, verdict.new)
        for event in verdict.losers:
            group.lose(known, event)
        return verdict

    async def _held(self, known: KnownStream, events: Sequence[NewEvent], group: Group) -> dict[int, Held]:
        """What the slots of `events` hold, in the table and in the group."""
        seqs = json.dumps(sorted({event.seq for event in events}))
        where = "WHERE stream_n = ? AND seq IN (SELECT value FROM json_each(?))"
        rows = await self._db.execute_fetchall(f"SELECT seq, digest FROM events {where}", (known.stream_n, seqs))
        held = {seq: Held(digest) for seq, digest in rows}
        differ = [event.seq for event in events if event.seq in held and held[event.seq].digest != event.digest]
        if differ:
            rows = await self._db.execute_fetchall(
                f"SELECT seq, digest, kind, actor, payload FROM events {where}",
                (known.stream_n, json.dumps(differ)),
            )
            held.update({seq: Held(*content) for seq, *content in rows})
        held.update({event.seq: held_by(event) for event in group.new.get(known.stream_n, ())})
        return held

    # Writing

    async def _commit(self, group: Group) -> None:
        statements = group.statements()
        seal, link = self._seal, self._link
        if group.rows:
            seal, link = seal + 1, sealing.link(link, group.sealed)
            statements += [
                ("INSERT INTO seals VALUES (?, ?, ?, ?)", (seal, group.first, group.position, link)),
                (
                    "UPDATE counters SET position = ?, seal = ?, link = ? WHERE bucket = 0 AND position = ?",
                    (group.position, seal, link, self.position),
                ),
            ]
        if self.tallies:
            statements.append(self._tally_statement())
        await self._db.transact(statements)
        self._tallied(group.now_ns)
        self.position, self._seal, self._link = group.position, seal, link
        self._stream_n, self._root_n = group.stream_n, group.root_n
        if len(self._known) + len(group.streams) > _STREAMS_KNOWN_MAX:
            self._known.clear()
            self._roots.clear()
        self._roots.update(group.roots)
        self._known.update(group.streams)
        if group.rows:
            self._on_commit(frozenset(known.root for known in group.streams.values()))

    def _count(self, group: Group) -> None:
        for stream_n, counts in group.tallies.items():
            held = self.tallies.setdefault(stream_n, [0, 0, 0, 0, 0])
            self.tallies[stream_n] = [a + b for a, b in zip(held, counts, strict=True)]

    def _tallied(self, now_ns: int) -> None:
        self.tallies.clear()
        self._tallied_at = now_ns

    def _tally_statement(self) -> Statement:
        rows = json.dumps([[stream_n, *counts] for stream_n, counts in self.tallies.items()])
        return (
            "INSERT INTO deliveries"
            " SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5"
            " FROM json_each(?) WHERE true"
            " ON CONFLICT (stream_n) DO UPDATE SET deliveries = deliveries + excluded.deliveries,"
            " duplicates = duplicates + excluded.duplicates, conflicts = conflicts + excluded.conflicts,"
            " late = late + excluded.late, results_repeated = results_repeated + excluded.results_repeated",
            (rows,),
        )


def _answer(future: asyncio.Future[Answer], value: Answer) -> None:
    if not future.done():  # its request may have been cut off
        future.set_result(value)


def _refuse(taken: Iterable[Pending | Aside], error: BaseException) -> None:
    for pending in taken:
        if not pending.answer.done():
            pending.answer.set_exception(error)


def _check(write: Write, known: KnownStream | None) -> None:
    """Raises where the write may not be done."""
    if known is None:
        if write.opening is None:
            raise unknown_session(write.stream)
        if write.expected_seq not in (None, NO_EVENTS):
            raise StreamMoved(write.stream, write.expected_seq or 0, NO_EVENTS)
        return
    if write.saddle is not None and write.saddle != known.saddle:
        raise unknown_session(write.stream)
    if write.opening is not None and write.opening.task_id != known.task_id:
        raise SessionElsewhere(
            f"session {write.stream!r} is open under task {known.task_id!r}, not {write.opening.task_id!r}"
        )
    if write.expected_seq is not None and write.expected_seq != known.high_seq:
        raise StreamMoved(write.stream, write.expected_seq, known.high_seq)
