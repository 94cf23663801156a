"""Runs as they stand: folded from their streams, and folded on from what was folded last."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from ledger.errors import InvalidField, NotFound
from ledger.events.model import END_SEQ, NO_EVENTS
from ledger.reader import Reader
from ledger.store.base import Store
from projections.fold import fold
from projections.remediation import register as registers
from projections.remediation import words
from projections.remediation.evolving import RUN
from projections.remediation.register import Entry, Register
from projections.remediation.state import Run

_RUNS_KEPT = 8
_EVENTS_AT_ONCE = 500


class Standing(msgspec.Struct, frozen=True):
    """A run, and how its task stands. A run is the first attempt of its task: where that was ended from outside, the
    run is over, however it stands (`cancelled`)."""

    run: Run
    task_status: str
    over: bool

    @property
    def cancelled(self) -> bool:
        return self.over and self.run.status != words.COMPLETED

    @property
    def active(self) -> bool:
        """Whether it stands in the way of another start. Once it does not, it never will again."""
        return self.run.is_active and not self.over


class Runs:
    """Keeps a few runs folded. A state never changes, so two readers who fold one on at once do no harm."""

    def __init__(self, store: Store, reader: Reader) -> None:
        self._store = store
        self._reader = reader
        self._register = Register()
        self._kept: OrderedDict[str, Run] = OrderedDict()

    async def register(self) -> Register:
        known = self._register
        while events := await self._store.read_stream(
            words.STREAM, from_seq=0 if known.last_seq == NO_EVENTS else known.last_seq + 1, limit=_EVENTS_AT_ONCE
        ):
            for event in events:
                known = registers.evolve(known, event)
        if known.last_seq > self._register.last_seq:
            self._register = known
        return known

    async def standing(self, run_id: str) -> Standing:
        """A run of the register."""
        run = await self._folded(run_id)
        task = (await self._reader.catalog()).work.tasks[run_id]
        return Standing(run, task.status, task.attempts[0].end is not None)

    async def active(self, register: Register) -> Standing | None:
        """The run that stands in the way of another: only the one that was entered last can."""
        if not register.runs:
            return None
        standing = await self.standing(register.runs[-1].run_id)
        return standing if standing.active else None

    async def current(self, owner: str) -> Standing | None:
        """The run that is active, else the newest of this owner; None where there is none. Raises NotFound where
        another owner's is active."""
        register = await self.register()
        if not register.runs:
            return None
        newest = register.runs[-1]
        mine = next((one for one in reversed(register.runs) if one.owner == owner), None)
        if newest is not mine:
            standing = await self.standing(newest.run_id)
            if standing.active:
                raise unknown_run()
        return None if mine is None else await self.standing(mine.run_id)

    async def of(self, run_id: str, owner: str | None) -> Standing:
        """A run by its id; of this owner, if one is given. Raises NotFound."""
        return await self.standing((await self.entry(run_id, owner)).run_id)

    async def entry(self, run_id: str, owner: str | None) -> Entry:
        """Raises NotFound, for another owner's run too."""
        entry = (await self.register()).entry(run_id)
        if entry is None or (owner is not None and entry.owner != owner):
            raise unknown_run(run_id)
        return entry

    async def refuse_unconditional(self, session_id: str) -> None:
        """A run is moved by its owner's decisions, and by a runner that has read all of it. Whatever reaches its
        session in another way, such as what an agent puts into its runner's outbox, is refused: raises
        InvalidField."""
        if words.RUN_ID.fullmatch(session_id) and (await self.register()).entry(session_id) is not None:
            detail = f"is missing: {session_id} is a supervised run, to which nothing is appended unseen"
            hint = "Runs are resumed, approved or cancelled by their owner: /api/resource-remediation."
            raise InvalidField("expected_seq", detail, code="expected_seq_required", hint=hint)

    async def _folded(self, run_id: str) -> Run:
        run = self._kept.get(run_id, Run())
        while events := await self._store.read_stream(run_id, from_seq=run.last_seq + 1, limit=_EVENTS_AT_ONCE):
            run = fold(RUN, run, events)
            if events[-1].seq == END_SEQ:  # an end that was pushed without a seq is none of the run's own
                break
        held = self._kept.get(run_id)
        if held is None or held.last_seq < run.last_seq:
            self._kept[run_id] = run
        self._kept.move_to_end(run_id)
        while len(self._kept) > _RUNS_KEPT:
            self._kept.popitem(last=False)
        return run


def unknown_run(run_id: str | None = None) -> NotFound:
    what = "the run that is active is another owner's" if run_id is None else f"no run {run_id!r} of yours"
    return NotFound(what, code="unknown_run", hint="GET /api/resource-remediation tells of yours.")
