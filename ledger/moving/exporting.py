"""Writes a whole ledger, line by line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from ledger.events.model import Recorded
from ledger.moving import lines
from ledger.moving.lines import Counts
from ledger.store.base import Heads, Loser, Store

PAGE_EVENTS = 500
LOSERS_MAX = 2**31 - 1  # of one stream: all of them


async def export_ledger(
    store: Store, write: Callable[[bytes], object], *, progress: Callable[[int], object] | None = None
) -> Counts:
    """Gives every line to `write`, as the log stands when the export begins; events that arrive meanwhile are left
    for the next one. `progress` is called with the number of events written so far. Memory grows with the number of
    streams, not with that of events."""
    heads = await store.heads()
    write(lines.header_line(store.ledger_id, store.buckets))
    streams: dict[str, None] = {}
    events = conflicts = 0
    async for event in _feed(store, heads):
        if event.session_id not in streams:
            streams[event.session_id] = None
            info = await store.stream(event.session_id)
            assert info is not None  # noqa: S101 — a stream with events is registered
            write(lines.stream_line(info))
        write(lines.event_line(event))
        events += 1
        if progress is not None and events % PAGE_EVENTS == 0:
            progress(events)
    for stream in streams:
        for loser in await _losers(store, stream, heads):
            write(lines.loser_line(loser))
            conflicts += 1
    if progress is not None:
        progress(events)
    counts = Counts(len(streams), events, conflicts)
    write(lines.end_line(counts))
    return counts


async def _feed(store: Store, heads: Heads) -> AsyncIterator[Recorded]:
    """The log up to `heads`."""
    seen = [0] * store.buckets
    while any(position < head for position, head in zip(seen, heads, strict=True)):
        for event in await store.read_feed(tuple(seen), limit=PAGE_EVENTS):
            seen[event.bucket] = event.position
            if event.position <= heads[event.bucket]:
                yield event


async def _losers(store: Store, stream: str, heads: Heads) -> list[Loser]:
    """The losers of a stream whose winner lies below `heads`: any other would be taken for the winner when the
    export is read."""
    held = []
    for loser in await store.losers(stream, limit=LOSERS_MAX):
        winners = await store.read_stream(stream, from_seq=loser.seq, limit=1)
        if winners and winners[0].position <= heads[winners[0].bucket]:
            held.append(loser)
    return held
