"""The incidents of all registers as they stand: read from the sessions of the sweeps, and from what owners decided.

A read costs what is new. Sweeps are found among the decisive events, read on from where the last read stood; of those
that are not over the sessions are read on. What is kept here and checkpointed in the store is a cache: dropping it
changes no answer.
"""

from __future__ import annotations

import asyncio
import contextlib

import msgspec

from ledger.errors import StorageError
from ledger.events.kinds import SESSION_OPENED
from ledger.events.model import END_SEQ, NO_EVENTS
from ledger.store.base import Checkpoint, Heads, Store, beyond
from projections import incidents_decided
from projections.fold import fold
from projections.incidents_board import Board
from projections.incidents_decided import STREAM, Decided
from projections.incidents_folding import BOARD, bounded

_EVENTS_AT_ONCE = 500
_CHECKPOINT_AFTER_EVENTS = 20_000


class Incidents:
    """Concurrent readers share one fold. `_heads` is how far sweeps have been looked for, `_read_at` the heads at
    which the sessions of those that are not over were read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._board = BOARD.initial
        self._heads: Heads = (0,) * store.buckets
        self._read_at: Heads | None = None
        self._decided = Decided()
        self._reading = asyncio.Lock()
        self._loaded = False
        self._unsaved = 0

    async def standing(self) -> tuple[Board, Decided]:
        """What all sweeps have told, and what was decided about it, as of now."""
        return await self.board(), await self.decided()

    async def board(self) -> Board:
        async with self._reading:
            if not self._loaded:
                await self._load()
            now = await self._store.heads()
            if now != self._read_at:
                await self._find_sweeps(now)
                await self._read_on()
                self._read_at = now
            return self._board

    async def decided(self) -> Decided:
        known = self._decided
        while events := await self._store.read_stream(
            STREAM, from_seq=0 if known.last_seq == NO_EVENTS else known.last_seq + 1, limit=_EVENTS_AT_ONCE
        ):
            for event in events:
                known = incidents_decided.evolve(known, event)
        if known.last_seq > self._decided.last_seq:
            self._decided = known
        return known

    async def _find_sweeps(self, now: Heads) -> None:
        """Takes the openings up to `now`. Board and heads go on together, so that no opening is taken twice; and what
        was opened is read before more is looked for, so that of a long history few runs are open at once."""
        while events := await self._store.read_feed(self._heads, limit=_EVENTS_AT_ONCE, decisive=True):
            openings = [event for event in events if event.kind == SESSION_OPENED]
            self._board, self._heads = fold(BOARD, self._board, openings), beyond(self._heads, events)
            await self._kept(len(events))
            if openings:
                await self._read_on()
        self._heads = tuple(map(max, self._heads, now))

    async def _read_on(self) -> None:
        """Reads the sessions of the runs that are not over."""
        for session_id in list(self._board.open):
            await self._read_session(session_id)
        self._board = bounded(self._board)

    async def _read_session(self, session_id: str) -> None:
        """Reads what has arrived of a session behind all of it that is here without a gap."""
        from_seq = self._board.open[session_id].next_seq
        while from_seq < END_SEQ:
            events = await self._store.read_stream(session_id, from_seq=from_seq, limit=_EVENTS_AT_ONCE)
            if not events:
                break
            self._board, from_seq = fold(BOARD, self._board, events), events[-1].seq + 1
            await self._kept(len(events))

    async def _load(self) -> None:
        kept = await self._store.load_checkpoint(BOARD.name, BOARD.version)
        if kept is not None:
            with contextlib.suppress(msgspec.MsgspecError):  # one that cannot be read is folded again
                heads, state = msgspec.msgpack.decode(kept.state, type=tuple[Heads, bytes])
                self._board, self._heads = await asyncio.to_thread(BOARD.decode, state), heads
        self._loaded = True

    async def _kept(self, events: int) -> None:
        """Checkpoints what was folded, now and then."""
        self._unsaved += events
        if self._unsaved < _CHECKPOINT_AFTER_EVENTS:
            return
        self._unsaved = 0
        heads, state = self._heads, await asyncio.to_thread(BOARD.encode, self._board)
        checkpoint = Checkpoint(BOARD.version, sum(heads), msgspec.msgpack.encode((heads, state)))
        with contextlib.suppress(StorageError):  # a cache that could not be kept is no reason to fail a read
            await self._store.save_checkpoint(BOARD.name, checkpoint)
