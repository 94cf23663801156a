"""Loops as they stand: folded from their sessions, and folded on from what was folded last.

A loop is known by its task. Its own session and that of its agents are read in seq order, each from where it was read
to; where something has come in below that, the session is read from its start, which the fold does not mind: copies
count once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Sequence
from itertools import islice

import msgspec

from ledger.commands.reading import unknown
from ledger.commands.requests import requests_of
from ledger.errors import StorageError
from ledger.events import kinds
from ledger.events.model import END_SEQ, OPENING_SEQ
from ledger.events.wire import RequestOut
from ledger.reader import Reader
from ledger.store.base import Checkpoint, Store
from projections import catalog as catalogs
from projections.fold import fold
from projections.loop import LOOPS
from projections.loop_state import AGENT, ITS_AGENTS, Loop, Loops
from projections.session import Session
from projections.task import Task

LIVE_READ_MAX = 100
_LOOPS_KEPT = 500
_EVENTS_AT_ONCE = 500
_CHECKPOINT_AFTER_EVENTS = 20_000
_CHECKPOINT_BYTES_MAX = 4 * 2**20


class Standing(msgspec.Struct, frozen=True):
    """A loop, the task that it works on, and its own session: the one opened last. `requests` are what was asked of
    it and not taken yet, the oldest first; `heard_at` is when something last came from it or its agents, in ns."""

    loop: Loop
    task: Task
    session: Session
    requests: Sequence[RequestOut]
    heard_at: int


class _Read(msgspec.Struct, array_like=True):
    """How far a session was read: the seq to go on from, how many events there were, and whether one of them lies in
    the end slot."""

    next_seq: int = OPENING_SEQ
    events: int = 0
    ended: bool = False


class _Kept:
    """One loop's fold, and the lock that makes its readers fold once."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.loaded = False
        self.loops = Loops()
        self.read: dict[str, _Read] = {}
        self.heard_at = 0
        self.unsaved = 0


class LoopReader:
    """What is kept here and checkpointed in the store are caches: dropping them changes no answer."""

    def __init__(self, store: Store, reader: Reader) -> None:
        self._store = store
        self._reader = reader
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._names: dict[str, str] = {}  # by task; a loop keeps its name

    async def newest(self, count: int, *, after: str | None = None) -> tuple[list[Standing], str | None]:
        """The `count` loops whose tasks are the newest, behind the task `after`; and what to give as `after` for the
        next ones, None if there are none. Raises KeyError if `after` is no task."""
        rest = catalogs.loops(await self._reader.catalog(), after=after)
        tasks = list(islice(rest, count))
        found = [await self.of(task) for task in tasks]
        return found, tasks[-1].id if tasks and next(rest, None) is not None else None

    async def called(self, name: str) -> list[Task]:
        """The tasks of the loops of this name, the newest first; a loop's task id names that one alone. Raises
        NotFound where there is none."""
        catalog = await self._reader.catalog()
        loops = list(catalogs.loops(catalog))
        named = [task for task in loops if task.id == name] or [
            task for task in loops if (self._names.get(task.id) or await self._name(task)) == name
        ]
        if not named:
            raise unknown("loop", name)
        return named

    async def live(self) -> list[tuple[Loop, Task, Session]]:
        """The loops that are halted, and the newest LIVE_READ_MAX of those that are not, with the task and the own
        session of each. What their agents cost may be missing: reading what those said takes longer."""
        catalog = await self._reader.catalog()
        suspended, working = (
            (task for _, _, task_id in catalog.tasks.in_status(state) if (task := catalog.work.tasks[task_id]).loops)
            for state in (kinds.SUSPENDED, kinds.WORKING)
        )
        tasks = [*suspended, *islice(working, LIVE_READ_MAX)]
        return [(_loop(await self._folded(task, (AGENT,)), task), task, _own_session(task)) for task in tasks]

    async def of(self, task: Task) -> Standing:
        """The loop of a task that the catalog holds among its loops."""
        kept = await self._folded(task, (AGENT, ITS_AGENTS))
        loop, own = _loop(kept, task), _own_session(task)
        taken = max(loop.taken_requests, default=-1)
        asked = await requests_of(self._store, own.session_id, own.saddle, after=taken)
        return Standing(loop, task, own, asked, kept.heard_at)

    async def _name(self, task: Task) -> str:
        return _loop(await self._folded(task, (AGENT,)), task).name

    async def _folded(self, task: Task, agents: Sequence[str]) -> _Kept:
        kept = self._kept.setdefault(task.id, _Kept())
        self._kept.move_to_end(task.id)
        while len(self._kept) > _LOOPS_KEPT:
            self._kept.popitem(last=False)
        async with kept.lock:
            if not kept.loaded:
                await self._load(task.id, kept)
            for session in task.sessions_of():
                if session.agent in agents:
                    await self._read_on(kept, session.session_id)
            if kept.unsaved >= _CHECKPOINT_AFTER_EVENTS:
                await self._save(task.id, kept)
        loop = kept.loops.loops.get(task.id)
        if loop is not None and loop.name:
            self._names[task.id] = loop.name
        return kept

    async def _read_on(self, kept: _Kept, session_id: str) -> None:
        info = await self._store.stream(session_id)
        if info is None:
            return
        kept.heard_at = max(kept.heard_at, info.last_recorded_at)
        read = kept.read.setdefault(session_id, _Read())
        if read.events + read.ended < info.events:
            await self._take(kept, session_id, read)
        if read.events + read.ended < info.events:  # something lies below what was read before
            read = kept.read[session_id] = _Read()
            await self._take(kept, session_id, read)

    async def _take(self, kept: _Kept, session_id: str, read: _Read) -> None:
        while events := await self._store.read_stream(session_id, from_seq=read.next_seq, limit=_EVENTS_AT_ONCE):
            kept.loops = fold(LOOPS, kept.loops, events)
            kept.unsaved += len(events)
            before_end = [event for event in events if event.seq != END_SEQ]
            read.events += len(before_end)
            if before_end:
                read.next_seq = before_end[-1].seq + 1
            if len(before_end) < len(events):
                read.ended = True
                break

    async def _load(self, task_id: str, kept: _Kept) -> None:
        kept.loaded = True
        saved = await self._store.load_checkpoint(_checkpoint(task_id), LOOPS.version)
        if saved is not None:
            with contextlib.suppress(msgspec.MsgspecError):  # one that cannot be read is folded again
                read, state = msgspec.msgpack.decode(saved.state, type=tuple[dict[str, _Read], bytes])
                kept.loops, kept.read = await asyncio.to_thread(LOOPS.decode, state), read

    async def _save(self, task_id: str, kept: _Kept) -> None:
        kept.unsaved = 0
        state = await asyncio.to_thread(LOOPS.encode, kept.loops)
        if len(state) > _CHECKPOINT_BYTES_MAX:
            return
        position = sum(read.events for read in kept.read.values())
        with contextlib.suppress(StorageError):  # a cache that could not be kept is no reason to fail a read
            checkpoint = Checkpoint(LOOPS.version, position, msgspec.msgpack.encode((kept.read, state)))
            await self._store.save_checkpoint(_checkpoint(task_id), checkpoint)


def _loop(kept: _Kept, task: Task) -> Loop:
    return kept.loops.loops.get(task.id, Loop(task.id))


def _own_session(task: Task) -> Session:
    return [session for session in task.sessions_of() if session.agent == AGENT][-1]


def _checkpoint(task_id: str) -> str:
    return f"loop {task_id}"
