"""Opening sessions, ad hoc tasks with them, and claiming queued work."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import Any
from uuid import uuid4

import msgspec

from ledger.commands import writing
from ledger.commands.reading import TITLE_CHARS_MAX, again_if_moved, bounded, optional_id, unknown
from ledger.commands.writing import last_seq, write_of
from ledger.errors import InvalidField, SessionElsewhere, StreamMoved
from ledger.events import kinds
from ledger.events.decode import new_event
from ledger.events.ids import checked_id
from ledger.events.model import NO_EVENTS, OPENING_SEQ
from ledger.events.times import parse_instant
from ledger.events.wire import AskIn, Id, OpenIn, TaskIn
from ledger.reader import Reader
from ledger.store.base import Appended, Opening, Store, StreamInfo, Write
from ledger.store.judging import held_by, same_content, unknown_session
from projections import daemons
from projections.catalog import Catalog
from projections.task import ORDINARY, QUEUED, Task

_LED = ("run-", "loop-")  # how the ids of those tasks begin that a daemon's session leads


class SessionCommands:
    """`numbering` is the lock that `Decisions` holds too while an id is given."""

    def __init__(self, store: Store, reader: Reader, numbering: asyncio.Lock) -> None:
        self._store = store
        self._reader = reader
        self._numbering = numbering

    async def open(self, asked: OpenIn, saddle: str, write: Write | None = None) -> tuple[str, Appended]:
        """Opens the session if it is new, and appends `write` to it in the same transaction.

        Gives the session's id and what was appended, the session's own write last. Raises InvalidField, NotFound for
        an unknown task or goal or another saddle's session, SessionElsewhere, StreamMoved for a conditional write."""
        session_id = _session_id(asked.session_id)

        async def opened() -> Appended:
            held = await self._store.stream(session_id)
            if held is not None:
                fields = await self._as_child(session_id, _again(asked, held, saddle))
                return await self._store.append([_session(session_id, fields, held.root, saddle, write)])
            catalog = await self._reader.catalog()
            task_id, root, before = _task_for(asked, session_id, catalog, saddle)
            fields = await self._as_child(session_id, msgspec.structs.replace(asked, task_id=task_id, task=None))
            return await self._store.append([*before, _session(session_id, fields, root, saddle, write)])

        async with self._numbering if asked.task is not None and asked.task.id is None else nullcontext():
            return session_id, await again_if_moved(opened, but=session_id)

    async def push(self, write: Write, opening: OpenIn | None, saddle: str) -> Appended:
        """Appends `write`, which may be conditional, to a session that is open or that `opening` opens with it.

        A conditional write that was stored already, by an attempt whose answer was lost, counts as duplicates. Raises
        StreamMoved where the session has moved otherwise, NotFound for a session of another saddle, what `open`
        raises."""
        try:
            return await self._push(write, opening, saddle)
        except StreamMoved as moved:
            if moved.stream != write.stream or not await self._holds_all_of(write):
                raise
        return await self._push(msgspec.structs.replace(write, expected_seq=None), opening, saddle)

    async def _push(self, write: Write, opening: OpenIn | None, saddle: str) -> Appended:
        if opening is None:
            return await self._store.append([write])
        return (await self.open(opening, saddle, write))[1]

    async def _holds_all_of(self, write: Write) -> bool:
        """Whether there are any events in it, and each is there with the same content. What is there stays, so the
        answer holds."""
        wanted = {event.seq: event for event in write.events}
        while wanted:
            first_seq = min(wanted)
            for held in await self._store.read_stream(write.stream, from_seq=first_seq, limit=len(wanted)):
                event = wanted.pop(held.seq, None)
                if event is not None and not same_content(held_by(held), event):
                    return False
            if first_seq in wanted:
                return False
        return bool(write.events)

    async def _as_child(self, session_id: str, fields: OpenIn) -> OpenIn:
        """On the task of a loop or of a supervised run, which bears the id of its session, every other session is a
        child of that one, whoever opens it: what it says of itself, such as that it is done, says nothing of the
        whole."""
        task_id = str(fields.task_id)
        if fields.parent_session_id is not None or session_id == task_id or not task_id.startswith(_LED):
            return fields
        task = (await self._reader.catalog()).work.tasks.get(task_id)
        lead = None if task is None else task.sessions.get(task_id)
        if task is None or lead is None or lead.agent not in (daemons.LOOP, daemons.REMEDIATION):
            return fields
        known = task.sessions.get(session_id)
        attempt = task.attempt.number if known is None else known.attempt
        return msgspec.structs.replace(fields, parent_session_id=task_id) if attempt == lead.attempt else fields

    async def claim(self, asked: AskIn, saddle: str) -> tuple[Task, str] | None:
        """Claims the task that has been queued longest and opens its session; None where nothing is queued.

        With a `session_id` that this saddle has open already, gives that session's task again."""
        session_id = _session_id(asked.session_id)
        if asked.session_id is not None and (held := await self._held_by(session_id, saddle)) is not None:
            return held, session_id
        catalog = await self._reader.catalog()
        for task in catalog.claimable():
            fields = OpenIn(task_id=task.id, agent=asked.agent, model=asked.model, cwd=asked.cwd, host=asked.host)
            root = writing.root_of_task(task.id, task.goal_id)
            try:
                await self._store.append(
                    [_claim(task, catalog, session_id, saddle), _session(session_id, fields, root, saddle, None)]
                )
            except (StreamMoved, SessionElsewhere):  # another saddle has won it, or the same ask, sent again
                if (held := await self._held_by(session_id, saddle)) is not None:
                    return held, session_id
                continue
            return task, session_id
        return None

    async def _held_by(self, session_id: str, saddle: str) -> Task | None:
        """The task of a session that is open. Raises NotFound for another saddle's."""
        info = await self._store.stream(session_id)
        if info is None:
            return None
        if info.saddle != saddle or info.task_id is None:
            raise unknown_session(session_id)
        return (await self._reader.catalog()).work.tasks[info.task_id]


def _session_id(wanted: Id | None) -> str:
    return uuid4().hex if wanted is None else checked_id(wanted, "session_id")


def _task_for(asked: OpenIn, session_id: str, catalog: Catalog, saddle: str) -> tuple[str, str, list[Write]]:
    """The task of a new session, its root, and what must be written before: the task itself, its claim."""
    if asked.task_id is not None:
        if asked.task is not None:
            raise InvalidField("task", "stands beside task_id", hint="Send one of task_id and task.")
        task_id = checked_id(asked.task_id, "task_id", slash_ok=False)
        if task_id not in catalog.work.tasks:
            raise unknown("task", task_id)
    elif asked.task is None:
        task_id = _task_of_kin(asked, catalog, saddle)
    else:
        named = optional_id(asked.task.id, "task.id")
        if named is None or named not in catalog.work.tasks:
            return _ad_hoc(named or str(catalog.next_task_number), asked.task, session_id, catalog, saddle)
        task_id = named
    task = catalog.work.tasks[task_id]
    root = writing.root_of_task(task.id, task.goal_id)
    if task.status != QUEUED:
        return task_id, root, []
    return task_id, root, [_claim(task, catalog, session_id, saddle)]


def _task_of_kin(asked: OpenIn, catalog: Catalog, saddle: str) -> str:
    """The task of the session of the same run, or of the parent, where this saddle has it open."""
    for field in ("same_run_as", "parent_session_id"):
        kin = optional_id(getattr(asked, field), field, slash_ok=True)
        session = None if kin is None else catalog.work.session(kin)
        if session is not None and session.saddle == saddle:
            return session.task_id
    raise InvalidField("task_id", "is missing", hint="Send task_id, or task to make an ad hoc one.")


def _ad_hoc(
    task_id: str, wanted: TaskIn, session_id: str, catalog: Catalog, saddle: str
) -> tuple[str, str, list[Write]]:
    goal_id = optional_id(wanted.goal_id, "task.goal_id")
    if goal_id is not None and goal_id not in catalog.work.goals:
        raise unknown("goal", goal_id)
    created = writing.task_created(
        task_id,
        ORDINARY,
        bounded(wanted.title, "task.title", TITLE_CHARS_MAX) or f"Task {task_id}",
        project_id=optional_id(wanted.project_id, "task.project_id"),
        goal_id=goal_id,
    )
    claimed = writing.of_task(task_id, kinds.TASK_CLAIMED, session_id=session_id, saddle=saddle)
    first = write_of(created, NO_EVENTS, saddle)
    second = write_of(claimed, 0, saddle)
    founding = msgspec.structs.replace(first, events=[*first.events, *second.events])
    return task_id, writing.root_of_task(task_id, goal_id), [founding]


def _claim(task: Task, catalog: Catalog, session_id: str, saddle: str) -> Write:
    fact = writing.of_task(task.id, kinds.TASK_CLAIMED, session_id=session_id, saddle=saddle)
    return write_of(fact, last_seq(catalog.work, fact.stream), saddle)


def _again(asked: OpenIn, held: StreamInfo, saddle: str) -> OpenIn:
    """The opening of a session that is open: under the task it has, or the one that is asked for by id, which the
    store refuses if it is another."""
    if held.saddle != saddle:
        raise unknown_session(held.stream)
    wanted = asked.task_id if asked.task is None else asked.task.id
    task_id = held.task_id if wanted is None else checked_id(wanted, "task_id", slash_ok=False)
    return msgspec.structs.replace(asked, task_id=task_id, task=None)


def _session(session_id: str, fields: OpenIn, root: str, saddle: str, write: Write | None) -> Write:
    began_at = None if fields.at is None else parse_instant(fields.at)
    event = new_event(OPENING_SEQ, kinds.SESSION_OPENED, saddle, _opened_payload(fields, saddle), began_at)
    opening = Opening(root, str(fields.task_id), saddle, fields.contiguous, event)
    if write is None:
        return Write(session_id, (), opening, saddle)
    return msgspec.structs.replace(write, opening=opening, saddle=saddle)


def _opened_payload(fields: OpenIn, saddle: str) -> dict[str, Any]:
    payload: dict[str, Any] = {
        "task_id": fields.task_id,
        "saddle": saddle,
        "resumed_from": optional_id(fields.resumed_from, "resumed_from", slash_ok=True),
        "parent_session_id": optional_id(fields.parent_session_id, "parent_session_id", slash_ok=True),
        "same_run_as": optional_id(fields.same_run_as, "same_run_as", slash_ok=True),
        "contiguous": fields.contiguous or None,
    }
    for name in ("agent", "model", "cwd", "host"):
        payload[name] = bounded(getattr(fields, name) or "", name, 4_000) or None
    return {name: value for name, value in payload.items() if value is not None}
