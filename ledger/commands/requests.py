"""What owners ask of a loop: read by the saddle that runs it."""

from __future__ import annotations

from ledger.events import kinds
from ledger.events.content import payload_object
from ledger.events.model import task_stream
from ledger.events.times import format_instant
from ledger.events.wire import RequestOut
from ledger.store.base import Store
from ledger.store.judging import unknown_session
from projections.actions import HALT, RESUME
from projections.payloads import text

REQUESTS_MAX = 100  # told at once; the next ask goes on behind the last
_ACTIONS = {kinds.LOOP_HALT_REQUESTED: HALT, kinds.LOOP_RESUME_REQUESTED: RESUME}


async def requests_of(store: Store, session_id: str, saddle: str, *, after: int) -> list[RequestOut]:
    """What was asked of the task of this saddle's session behind the seq `after` of the task's own stream, the oldest
    first. Raises NotFound for an unknown session or another saddle's."""
    info = await store.stream(session_id)
    if info is None or info.task_id is None or info.saddle != saddle:
        raise unknown_session(session_id)
    found: list[RequestOut] = []
    while len(found) < REQUESTS_MAX:
        events = await store.read_stream(task_stream(info.task_id), from_seq=after + 1)
        if not events:
            break
        found += [
            RequestOut(
                seq=event.seq,
                action=_ACTIONS[event.kind],
                reason=text(payload_object(event.payload), "reason"),
                by=event.actor,
                at=format_instant(event.recorded_at),
            )
            for event in events
            if event.kind in _ACTIONS
        ]
        after = events[-1].seq
    return found[:REQUESTS_MAX]
