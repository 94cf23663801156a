"""Places events of another ledger in a store, in the order in which they are given."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from ledger.events.model import OPENING_SEQ, NewEvent
from ledger.store.base import Appended, Opening, Store, Write, Written

BATCH_EVENTS = 500
BATCH_BYTES = 8 * 2**20


class Imported(msgspec.Struct):
    """What became of events that were carried over.

    `stored` events were new and `duplicates` were there already; `losers` of earlier conflicts were put back;
    `conflicts` are the `(session_id, seq)` that this ledger held with other content, which stays.
    """

    stored: int = 0
    duplicates: int = 0
    losers: int = 0
    conflicts: list[tuple[str, int]] = []


class Placer:
    """Gathers events into appends. What is added is stored once `flush` has returned."""

    def __init__(self, store: Store) -> None:
        self.imported = Imported()
        self._store = store
        self._runs: list[_Run] = []
        self._events = 0
        self._bytes = 0

    def is_full(self) -> bool:
        return self._events >= BATCH_EVENTS or self._bytes >= BATCH_BYTES

    def add(self, stream: str, opening: Opening, event: NewEvent, *, is_loser: bool = False) -> None:
        """`opening` is how the stream is registered, without its event; a loser is an event whose slot is taken."""
        if event.seq == OPENING_SEQ:
            self._runs.append(_Run(stream, replace(opening, event=event), is_loser))
        elif self._runs and (last := self._runs[-1]).stream == stream and last.is_loser == is_loser:
            last.events.append(event)
        else:
            self._runs.append(_Run(stream, opening, is_loser, [event]))
        self._events += 1
        self._bytes += len(event.payload) + len(event.extra or b"")

    async def flush(self) -> None:
        """Raises what the store raises, after all the others have been stored."""
        runs, self._runs = self._runs, []
        self._events = self._bytes = 0
        by_bucket: dict[int, list[_Run]] = {}
        for run in runs:
            by_bucket.setdefault(self._store.bucket_of(run.opening.root), []).append(run)
        batches = [batch for of_bucket in by_bucket.values() for batch in _batches(of_bucket)]
        # A store decides appends in the order of their calls, so those of one transaction may be on the way together.
        appends = [self._store.append([run.write() for run in batch]) for batch in batches]
        outcomes = await asyncio.gather(*appends, return_exceptions=True)
        failed: BaseException | None = None
        for batch, outcome in zip(batches, outcomes, strict=True):
            if isinstance(outcome, Appended):
                for run, written in zip(batch, outcome.writes, strict=True):
                    self._count(run, written)
            else:
                failed = failed or outcome
        if failed is not None:
            raise failed

    def _count(self, run: _Run, written: Written) -> None:
        if run.is_loser:
            self.imported.losers += len(written.conflicts)
            return
        if run.opening.event is not None and OPENING_SEQ not in written.conflicts:
            self.imported.stored += written.opened
            self.imported.duplicates += not written.opened
        self.imported.stored += written.stored
        self.imported.duplicates += written.duplicates
        self.imported.conflicts += [(run.stream, seq) for seq in written.conflicts]


class _Run(msgspec.Struct):
    """Events of one stream that stand together in the log."""

    stream: str
    opening: Opening
    is_loser: bool
    events: list[NewEvent] = []

    def write(self) -> Write:
        return Write(self.stream, self.events, self.opening)


def _batches(runs: list[_Run]) -> Iterator[list[_Run]]:
    """The runs in their order, parted so that no batch names a stream twice."""
    batch: list[_Run] = []
    named: set[str] = set()
    for run in runs:
        if run.stream in named:
            yield batch
            batch, named = [], set()
        batch.append(run)
        named.add(run.stream)
    if batch:
        yield batch
