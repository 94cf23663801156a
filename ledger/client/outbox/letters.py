"""The dead letters of an outbox: events that the server would not take, kept until somebody decides about them."""

from __future__ import annotations

from typing import Any

import msgspec

from ledger.events.model import NewEvent
from ledger.store.outbox_file import Connection


class DeadLetter(msgspec.Struct, frozen=True):
    """An event that was taken out of the queue: `code` and `detail` say why, `buried_at` (ns) when."""

    session_id: str
    code: str
    detail: str
    buried_at: int
    event: NewEvent


def bury(db: Connection, session_id: str, event: NewEvent, code: str, detail: str, now: int) -> None:
    db.execute(
        "INSERT INTO dead_letters (stream, seq, code, detail, buried_at, at, digest, kind, actor, extra, payload)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            session_id,
            event.seq,
            code,
            detail,
            now,
            event.at,
            event.digest,
            event.kind,
            event.actor,
            event.extra,
            event.payload,
        ),
    )


def read(db: Connection, limit: int) -> list[DeadLetter]:
    """The newest first."""
    rows = db.execute(
        "SELECT stream, code, detail, buried_at, seq, kind, actor, payload, digest, at, extra"
        " FROM dead_letters ORDER BY letter_n DESC LIMIT ?",
        (limit,),
    )
    return [_letter(row) for row in rows]


def discard_all(db: Connection) -> int:
    return db.execute("DELETE FROM dead_letters").rowcount


def _letter(row: tuple[Any, ...]) -> DeadLetter:
    session_id, code, detail, buried_at, *event = row
    return DeadLetter(session_id, code, detail, buried_at, NewEvent(*event))
