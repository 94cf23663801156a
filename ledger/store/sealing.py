"""The chain of seals: what one transaction's link covers, written once so that writing and verifying agree.

link = SHA-256(previous link ‖ row ‖ row ‖ …), a row being its fixed-width numbers followed by its texts, each with
its length in front. The first link's predecessor is the ledger id.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable

from ledger.events.content import content_digest
from ledger.events.model import Recorded

_NUMBERS = struct.Struct(">qqqq16s")
_NO_TIME = -(2**63)
_NOTHING = b"0:"


def text(value: str | bytes | None) -> bytes:
    data = value.encode() if isinstance(value, str) else value or b""
    return b"%d:" % len(data) + data


def identity(session_id: str, task_id: str | None, root: str) -> bytes:
    """The part of a row that all events of a stream share."""
    return text(session_id) + text(task_id) + text(root)


def row(
    position: int, seq: int, at: int | None, recorded_at: int, digest: bytes, identity: bytes, extra: bytes | None
) -> bytes:
    numbers = _NUMBERS.pack(position, seq, _NO_TIME if at is None else at, recorded_at, digest)
    return numbers + identity + (_NOTHING if extra is None else text(extra))


def row_of(event: Recorded) -> bytes:
    """The row of a stored event, with the digest computed anew from what is stored."""
    return row(
        event.position,
        event.seq,
        event.at,
        event.recorded_at,
        content_digest(event.kind, event.actor, event.payload),
        identity(event.session_id, event.task_id, event.root),
        event.extra,
    )


def first_link(ledger_id: str, bucket: int) -> bytes:
    return hashlib.sha256(f"{ledger_id}/{bucket}".encode()).digest()


def link(previous: bytes, rows: Iterable[bytes]) -> bytes:
    return hashlib.sha256(previous + b"".join(rows)).digest()
