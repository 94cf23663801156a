"""Events gathered into batches that a chunk can carry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ledger.transcripts.model import Batch, Event, TranscriptSession

BATCH_EVENTS_MAX = 500
BATCH_BYTES_MAX = 4 * 2**20

Gathered = tuple[TranscriptSession, list[Event], int, int]
"""Events of one session, their size and the offset in the file up to which they reach (bytes)."""


def gathered(
    parts: Iterable[Gathered], *, events_max: int = BATCH_EVENTS_MAX, bytes_max: int = BATCH_BYTES_MAX
) -> Iterator[Batch]:
    """Joins the parts of each session into batches of at most `events_max` events and about `bytes_max` bytes.
    A part that is larger than that goes alone. Sessions come in the order of their first event."""
    held: dict[str, tuple[TranscriptSession, list[Event]]] = {}
    count = size = offset = 0
    for session, events, bytes_, end in parts:
        if count and (count + len(events) > events_max or size + bytes_ > bytes_max):
            for held_session, held_events in held.values():
                yield Batch(held_session, held_events, offset)
            held = {}
            count = size = 0
        held.setdefault(session.session_id, (session, []))[1].extend(events)
        count += len(events)
        size += bytes_
        offset = end
    for held_session, held_events in held.values():
        yield Batch(held_session, held_events, offset)
