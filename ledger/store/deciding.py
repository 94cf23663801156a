"""What becomes of an append: checked, judged event by event, and staged in the group of its transaction.

The same for every backend that keeps numbers for streams and roots; what is durable it asks for through `Tables`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ledger.errors import SessionElsewhere, StreamMoved
from ledger.events.model import NO_EVENTS, OPENING_SEQ, NewEvent
from ledger.store.base import Opening, Write, Written
from ledger.store.judging import Held, Judged, all_new, held_by, judge, unknown_session
from ledger.store.staging import Group, KnownStream


class Tables(Protocol):
    """What is durable, as the transaction sees it."""

    async def known(self, stream: str) -> KnownStream | None:
        """The stream as it stands after the last commit; must not be changed."""
        ...

    async def root_n(self, root: str) -> int | None: ...

    async def held(self, known: KnownStream, events: Sequence[NewEvent]) -> dict[int, Held]:
        """What the slots of `events` hold, by seq; with the content where the digests differ."""
        ...


async def decide(writes: Sequence[Write], group: Group, tables: Tables) -> tuple[Written, ...]:
    """Stages the writes of one append, and tells what became of each. Raises NotFound, SessionElsewhere or
    StreamMoved with nothing staged."""
    if len(writes) > 1 and len({write.stream for write in writes}) < len(writes):
        raise ValueError("an append names a stream once")
    found = [group.streams.get(write.stream) or await tables.known(write.stream) for write in writes]
    for write, known in zip(writes, found, strict=True):
        _check(write, known)
    return tuple([await _stage(write, known, group, tables) for write, known in zip(writes, found, strict=True)])


def _check(write: Write, known: KnownStream | None) -> None:
    """Raises where the write may not be done."""
    if known is None:
        if write.opening is None:
            raise unknown_session(write.stream)
        if write.expected_seq not in (None, NO_EVENTS, OPENING_SEQ):
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


async def _stage(write: Write, found: KnownStream | None, group: Group, tables: Tables) -> Written:
    opened = found is None
    if found is None:
        assert write.opening is not None  # noqa: S101 — as checked
        known = await _open(write.stream, write.opening, group, tables)
    else:
        known = found if write.stream in group.streams else found.copy()
    lost: Sequence[NewEvent] = ()
    if write.opening is not None and write.opening.event is not None:
        lost = (await _judge(known, [write.opening.event], group, tables)).losers
    verdict = await _judge(known, write.events, group, tables)
    if write.events:
        group.tally(known.stream_n, verdict)
    return Written(
        stored=len(verdict.new),
        duplicates=verdict.duplicates,
        conflicts=tuple([event.seq for event in [*lost, *verdict.losers]]),
        high_seq=known.high_seq,
        opened=opened,
        task_id=known.task_id,
        root=known.root,
        contiguous=known.contiguous,
    )


async def _open(stream: str, opening: Opening, group: Group, tables: Tables) -> KnownStream:
    root_n = group.roots.get(opening.root) or await tables.root_n(opening.root)
    if root_n is None:
        group.root_n += 1
        root_n = group.roots[opening.root] = group.root_n
    group.stream_n += 1
    group.opened.add(stream)
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


async def _judge(known: KnownStream, events: Sequence[NewEvent], group: Group, tables: Tables) -> Judged:
    if all_new(events, known.high_seq) and (not events or events[0].seq >= 0 or known.events == 0):
        verdict = Judged(new=events)
    else:
        held = await tables.held(known, events)
        held.update({event.seq: held_by(event) for event in group.new.get(known.stream_n, ())})
        verdict = judge(events, held, known.high_seq)
    if verdict.new:
        group.streams[known.stream] = known
        group.add(known, verdict.new)
    for event in verdict.losers:
        group.lose(known, event)
    return verdict
