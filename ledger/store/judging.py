"""First write wins: which events of a write are new, which are duplicates, which are in conflict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ledger.errors import NotFound
from ledger.events.content import same_payload
from ledger.events.kinds import RESULT
from ledger.events.model import END_SEQ, NewEvent, Recorded


class Held(msgspec.Struct, frozen=True):
    """What a slot holds. The content is needed only where the digests differ."""

    digest: bytes
    kind: str = ""
    actor: str = ""
    payload: bytes = b""


class Judged(msgspec.Struct):
    new: Sequence[NewEvent] = ()
    duplicates: int = 0
    losers: list[NewEvent] = []
    late: int = 0
    results_repeated: int = 0


def all_new(events: Sequence[NewEvent], high_seq: int) -> bool:
    """True where no event can meet a slot that is taken: rising seqs above everything the stream holds."""
    seqs = [event.seq for event in events]
    if not seqs or seqs[0] <= high_seq or seqs[-1] == END_SEQ:
        return not seqs
    return len(seqs) == 1 or seqs == sorted(set(seqs))


def held_by(event: NewEvent | Recorded) -> Held:
    return Held(event.digest, event.kind, event.actor, event.payload)


def same_content(held: Held, event: NewEvent) -> bool:
    return held.digest == event.digest or (
        held.kind == event.kind and held.actor == event.actor and same_payload(held.payload, event.payload)
    )


def judge(events: Iterable[NewEvent], held: dict[int, Held], high_seq: int) -> Judged:
    """Sorts events into new ones, duplicates and losers against `held` (by seq), which it completes on the way, so
    that a key that stands twice in one chunk is judged like two deliveries."""
    new: list[NewEvent] = []
    verdict = Judged()
    for event in events:
        other = held.get(event.seq)
        if other is None:
            held[event.seq] = held_by(event)
            new.append(event)
            verdict.late += 0 <= event.seq < high_seq
            high_seq = max(high_seq, event.seq) if event.seq != END_SEQ else high_seq
            continue
        verdict.results_repeated += event.kind == RESULT
        if same_content(other, event):
            verdict.duplicates += 1
        else:
            verdict.losers.append(event)
    verdict.new = new
    return verdict


def unknown_session(session_id: str) -> NotFound:
    return NotFound(
        f"no session {session_id!r} of this saddle",
        code="unknown_session",
        hint="Open it first: POST /api/saddle/sessions, or send `open` with the chunk.",
    )
