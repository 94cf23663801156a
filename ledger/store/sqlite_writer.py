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
from operator import add
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ledger.errors import LedgerError, StorageError
from ledger.events.model import NewEvent
from ledger.store import sealing
from ledger.store.base import Appended, Heads, Write, Written
from ledger.store.deciding import decide
from ledger.store.judging import Held, all_new
from ledger.store.sqlite_file import Database, Statement, driver_errors
from ledger.store.sqlite_group import statements
from ledger.store.staging import Group, KnownStream

_GROUP_EVENTS_MAX = 800
_GATHER_S_MAX = 0.002
_STREAMS_KNOWN_MAX = 50_000
_TALLIES_KEPT_NS = 1_000_000_000  # counts of duplicates alone are written this often

_SLOTS = "FROM events WHERE stream_n = ? AND seq IN (SELECT value FROM json_each(?))"
_DIGESTS = f"SELECT seq, digest {_SLOTS}"
_CONTENTS = f"SELECT seq, digest, kind, actor, payload {_SLOTS}"

Answer = TypeVar("Answer")
Tallies = dict[int, list[int]]  # what Delivery counts, by stream number


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
        self._waiting_events = 0
        self._answered = 0  # by the group before
        self._enough = 1
        self._full: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._aside: deque[Aside] = deque()
        self._wake = asyncio.Event()
        self._closing = False
        self._known: dict[str, KnownStream] = {}
        self._roots: dict[str, int] = {}
        self.tallies: Tallies = {}  # counted, not yet written
        self._tallied_at = 0
        self._slots: dict[int, dict[int, Held]] = {}  # what the slots hold that the group in work may meet
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
            # counts beside the log: not worth failing a stop for
            with contextlib.suppress(StorageError), driver_errors(self._path):
                await self._write_tallies(self.tallies, self._clock())

    async def append(self, writes: Sequence[Write]) -> Appended:
        if self._closing:
            raise StorageError(f"{self._path} is closed")
        pending = Pending(writes, asyncio.get_running_loop().create_future())
        self._waiting.append(pending)
        self._waiting_events += _weight(pending)
        self._wake.set()
        if len(self._waiting) >= self._enough or self._waiting_events >= _GROUP_EVENTS_MAX:
            _answer(self._full, None)
        return await pending.answer

    async def put(self, sql: str, values: Sequence[Any]) -> None:
        """Runs one statement beside the log, durably, between two groups."""
        if self._closing:
            raise StorageError(f"{self._path} is closed")
        aside = Aside(sql, values, asyncio.get_running_loop().create_future())
        self._aside.append(aside)
        self._wake.set()
        await aside.answer

    @property
    def heads(self) -> Heads:
        return (self.position,)

    async def _run(self) -> None:
        while self._waiting or self._aside or not self._closing:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting or self._aside:
                await self._gather()
                taken: list[Pending | Aside] = [self._aside.popleft()] if self._aside else list(self._take())
                try:
                    with driver_errors(self._path):
                        await self._serve(taken)
                except asyncio.CancelledError:
                    _refuse(taken, StorageError(f"{self._path} was closed"))
                    raise
                except Exception as error:  # whatever it was, each sender is asked to send again
                    self._known.clear()
                    self._roots.clear()
                    _refuse(
                        taken, error if isinstance(error, LedgerError) else StorageError(f"{self._path}: {error}")
                    )

    async def _gather(self) -> None:
        """Waits a moment for those who are about to come back, everybody whose append was answered just now, until
        half of them and of those who wait already are there. Otherwise a single one is written alone while all the
        others come in, again and again. Somebody who is alone is not kept waiting."""
        self._enough = (self._answered + len(self._waiting) + 1) // 2
        if len(self._waiting) >= self._enough or self._waiting_events >= _GROUP_EVENTS_MAX:
            return
        loop = asyncio.get_running_loop()
        self._full = loop.create_future()
        timer = loop.call_later(_GATHER_S_MAX, _answer, self._full, None)
        await self._full
        timer.cancel()

    def _take(self) -> Iterator[Pending]:
        events = 0
        while self._waiting and events < _GROUP_EVENTS_MAX:
            pending = self._waiting.popleft()
            events += _weight(pending)
            yield pending
        self._waiting_events -= events

    async def _serve(self, taken: Sequence[Pending | Aside]) -> None:
        await self._look_up([pending for pending in taken if isinstance(pending, Pending)])
        group = Group(self.position, self._stream_n, self._root_n, self._clock())
        answers: list[tuple[Pending, tuple[Written, ...]]] = []
        for pending in taken:
            if isinstance(pending, Aside):
                await self._db.transact([(pending.sql, pending.values)])
                _answer(pending.answer, None)
                continue
            try:
                answers.append((pending, await decide(pending.writes, group, self)))
            except (LedgerError, ValueError) as error:
                _refuse([pending], error)
        tallies = _added(self.tallies, group.tallies)
        if group.writes_something:
            await self._commit(group, tallies)
        elif tallies and group.now_ns - self._tallied_at > _TALLIES_KEPT_NS:
            await self._write_tallies(tallies, group.now_ns)
        else:
            self.tallies = tallies
        self._answered = len(answers)
        for pending, written in answers:
            _answer(pending.answer, Appended(written, self.heads))

    # What is in the tables

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

    async def root_n(self, root: str) -> int | None:
        if (root_n := self._roots.get(root)) is not None:
            return root_n
        for (found,) in await self._db.execute_fetchall("SELECT root_n FROM roots WHERE root = ?", (root,)):
            self._roots[root] = found
        return self._roots.get(root)

    async def held(self, known: KnownStream, events: Sequence[NewEvent]) -> dict[int, Held]:
        """What the slots of `events` hold, with the content where the digests differ."""
        held = self._slots.get(known.stream_n)
        if held is None:
            rows = await self._db.execute_fetchall(_DIGESTS, _slots(known, (event.seq for event in events)))
            held = {seq: Held(digest) for seq, digest in rows}
        differ = [event.seq for event in events if event.seq in held and held[event.seq].digest != event.digest]
        if differ:
            rows = await self._db.execute_fetchall(_CONTENTS, _slots(known, differ))
            held.update({seq: Held(*content) for seq, *content in rows})
        return held

    async def _look_up(self, taken: Iterable[Pending]) -> None:
        """Reads ahead what the slots hold that this group's events may meet, in one visit to the driver's thread."""
        wanted: dict[str, set[int]] = {}
        for write in [write for pending in taken for write in pending.writes]:
            known = self._known.get(write.stream)
            if known is None:
                continue
            if write.opening is not None and write.opening.event is not None:
                wanted.setdefault(write.stream, set()).add(write.opening.event.seq)
            if write.stream in wanted or not all_new(write.events, known.high_seq):
                wanted.setdefault(write.stream, set()).update(event.seq for event in write.events)
        streams = [self._known[stream] for stream in wanted]
        self._slots = {}
        if streams:
            found = await self._db.fetch_each([(_DIGESTS, _slots(known, wanted[known.stream])) for known in streams])
            for known, rows in zip(streams, found, strict=True):
                self._slots[known.stream_n] = {seq: Held(digest) for seq, digest in rows}

    # Writing

    async def _commit(self, group: Group, tallies: Tallies) -> None:
        written = statements(group)
        seal, link = self._seal, self._link
        if group.rows:
            seal, link = seal + 1, sealing.link(link, group.sealed)
            written += [
                ("INSERT INTO seals VALUES (?, ?, ?, ?)", (seal, group.first, group.position, link)),
                (
                    "UPDATE counters SET position = ?, seal = ?, link = ? WHERE bucket = 0 AND position = ?",
                    (group.position, seal, link, self.position),
                ),
            ]
        if tallies:
            written.append(_tally_statement(tallies))
        await self._db.transact(written)
        self.tallies, self._tallied_at = {}, group.now_ns
        self.position, self._seal, self._link = group.position, seal, link
        self._stream_n, self._root_n = group.stream_n, group.root_n
        if len(self._known) + len(group.streams) > _STREAMS_KNOWN_MAX:
            self._known.clear()
            self._roots.clear()
        self._roots.update(group.roots)
        self._known.update(group.streams)
        if group.rows:
            self._on_commit(frozenset(known.root for known in group.streams.values()))

    async def _write_tallies(self, tallies: Tallies, now_ns: int) -> None:
        await self._db.transact([_tally_statement(tallies)])
        self.tallies, self._tallied_at = {}, now_ns


def _added(one: Tallies, other: Tallies) -> Tallies:
    if not one:
        return other
    nothing = [0] * 5
    names = one.keys() | other.keys()
    return {name: list(map(add, one.get(name, nothing), other.get(name, nothing))) for name in names}


def _tally_statement(tallies: Tallies) -> Statement:
    rows = json.dumps([[stream_n, *counts] for stream_n, counts in tallies.items()])
    return (
        "INSERT INTO deliveries"
        " SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5"
        " FROM json_each(?) WHERE true"
        " ON CONFLICT (stream_n) DO UPDATE SET deliveries = deliveries + excluded.deliveries,"
        " duplicates = duplicates + excluded.duplicates, conflicts = conflicts + excluded.conflicts,"
        " late = late + excluded.late, results_repeated = results_repeated + excluded.results_repeated",
        (rows,),
    )


def _weight(pending: Pending) -> int:
    return sum([len(write.events) or 1 for write in pending.writes])


def _slots(known: KnownStream, seqs: Iterable[int]) -> tuple[int, str]:
    return known.stream_n, json.dumps(sorted(set(seqs)))


def _answer(future: asyncio.Future[Answer], value: Answer) -> None:
    if not future.done():  # its request may have been cut off
        future.set_result(value)


def _refuse(taken: Iterable[Pending | Aside], error: BaseException) -> None:
    for pending in taken:
        if not pending.answer.done():
            pending.answer.set_exception(error)
