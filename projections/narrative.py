"""The rows that a person reads, each said once.

**Order.** A row stands at its anchor. One that comes in order (no row of its session stands above its seq) is
anchored at the position of the event that made it. One that comes late shares the anchor of its successor within its
session, so it stands directly before it. The rows of a session thus stand in seq order whatever order they came in,
and what has been placed does not move.

**Copies.** The same scope, seq, kind and content said under several sessions are one row; it belongs to the session
that said it first. A fact that has a name of its own (`fact_of`: a call id, a message id) is known by it in place of
the seq: two that watch the same agent tell it under seqs of their own.

**Digest.** The sum modulo 2^256 of the SHA-256 of each row's `[kind, text, at, actor, task_id, seq]` as JSON, `at`
being the time that the sender claimed (ns) or null, and the fact's name in place of a seq where it has one. It does
not depend on order, positions, copies or recorded times.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from immutables import Map
from msgspec.structs import replace

from ledger.events.model import Recorded
from ledger.events.times import format_instant
from projections.ordered import Ordered
from projections.payloads import fact_of

ROWS_SHOWN = 200

_MODULUS = 2**256
_WHOLE = ""  # the book of all rows; the others are named by task, and no id is empty


class Saying(msgspec.Struct, frozen=True, gc=False):
    """Where a row comes from: the event's identity and times (ns); `fact` is the name of what it tells, if any."""

    session_id: str
    seq: int
    position: int
    at: int | None
    recorded_at: int
    actor: str
    fact: str | None = None

    @property
    def key(self) -> int | str:
        """What tells it from others with the same words."""
        return self.seq if self.fact is None else self.fact


class Row(msgspec.Struct, frozen=True, gc=False):
    """`content` identifies what is said; `copies` are the other sayings of the same."""

    kind: str
    text: str
    task_id: str | None
    saying: Saying
    anchor: int
    content: bytes
    copies: tuple[Saying, ...] = ()

    @property
    def told_by(self) -> int:
        """How many sessions said it."""
        return len({one.session_id for one in (self.saying, *self.copies)})

    @property
    def claimed_at(self) -> int | None:
        """The earliest time claimed for it: the copies may come in any order."""
        times = [one.at for one in (self.saying, *self.copies) if one.at is not None]
        return min(times, default=None)


class Book(msgspec.Struct, frozen=True):
    """The rows of one scope: (anchor, seq, position) in order, and their digest."""

    order: Ordered[tuple[int, int, int]] = Ordered()
    digest: bytes = bytes(32)


class Narrative(msgspec.Struct, frozen=True):
    rows: Map[int, Row] = Map()  # by the position of the event that a row comes from
    by_content: Map[bytes, int] = Map()
    books: Map[str, Book] = Map()
    sessions: Map[str, Ordered[tuple[int, int]]] = Map()  # session_id → (seq, position) of its own rows


def saying_of(event: Recorded, payload: Mapping[str, Any] | None = None) -> Saying:
    """With the `payload` of an event that tells a fact, by the name of it."""
    fact = None if payload is None else fact_of(payload)
    return Saying(event.session_id, event.seq, event.position, event.at, event.recorded_at, event.actor, fact)


def content_of(kind: str, text: str, task_id: str | None, saying: Saying) -> bytes:
    """What makes two rows copies of each other."""
    return _sha256([kind, text, saying.actor, task_id, saying.key])[:16]


def say(
    narrative: Narrative,
    kind: str,
    text: str,
    task_id: str | None,
    saying: Saying,
    *,
    now: int,
    content: bytes | None = None,
) -> Narrative:
    """With one row more, or one copy more of a row. `now` is the position of the event being folded; `content`
    overrules what counts as the same."""
    content = content_of(kind, text, task_id, saying) if content is None else content
    known = narrative.by_content.get(content)
    if known is None:
        return _placed(narrative, Row(kind, text, task_id, saying, now, content))
    row = narrative.rows[known]
    if any(_is(one, saying) for one in (row.saying, *row.copies)):
        return narrative
    return _exchanged(narrative, row, replace(row, copies=(*row.copies, saying)))


def unsay(narrative: Narrative, content: bytes, saying: Saying, *, now: int) -> Narrative:
    """Without this saying of it: a late event has shown that it did not happen so."""
    known = narrative.by_content.get(content)
    if known is None:
        return narrative
    row = narrative.rows[known]
    if not _is(row.saying, saying):
        copies = tuple(one for one in row.copies if not _is(one, saying))
        return _exchanged(narrative, row, replace(row, copies=copies))
    narrative = _removed(narrative, row)
    if not row.copies:
        return narrative
    heir, *others = row.copies
    return _placed(narrative, replace(row, saying=heir, copies=tuple(others), anchor=now))


def rows(
    narrative: Narrative, *, limit: int = ROWS_SHOWN, before: int | None = None, task_id: str | None = None
) -> tuple[list[Row], int | None]:
    """The newest rows, the oldest of them first, of the whole narrative or of one task; and what to give as `before`
    to read the rows before these, None if there are none."""
    order = _book(narrative, task_id).order
    found: list[Row] = []
    for _, _, position in order.falling(_key_before(narrative, before)):
        if len(found) == limit:
            return found[::-1], found[-1].saying.position if found else before
        found.append(narrative.rows[position])
    return found[::-1], None


def all_rows(narrative: Narrative) -> Iterator[Row]:
    """Every row, the oldest first."""
    return (narrative.rows[position] for _, _, position in _book(narrative, None).order)


def milestones(narrative: Narrative, count: int) -> list[Row]:
    """At most `count` rows, evenly spaced over all, the newest among them; in the order of the rows."""
    return [narrative.rows[position] for _, _, position in _book(narrative, None).order.spread(count)]


def digest(narrative: Narrative, task_id: str | None = None) -> str:
    """64 hex digits over all rows, or those of one task."""
    return _book(narrative, task_id).digest.hex()


def row_item(row: Row) -> dict[str, Any]:
    claimed_at = row.claimed_at
    return {
        "kind": row.kind,
        "text": row.text,
        "at": format_instant(row.saying.recorded_at if claimed_at is None else claimed_at),
        "actor": row.saying.actor,
        "task_id": row.task_id,
        "session_id": row.saying.session_id,
        "seq": row.saying.seq,
        "position": row.saying.position,
        "copies": row.told_by,
    }


def _is(one: Saying, other: Saying) -> bool:
    return one.session_id == other.session_id and one.seq == other.seq


def _placed(narrative: Narrative, row: Row) -> Narrative:
    """`row.anchor` is where it stands if it comes in order."""
    saying = row.saying
    own = narrative.sessions.get(saying.session_id, Ordered())
    successor = own.after((saying.seq, saying.position))
    if successor is not None:
        row = replace(row, anchor=narrative.rows[successor[1]].anchor)
    books = narrative.books
    for name in _books_of(row):
        book = books.get(name, Book())
        books = books.set(name, Book(book.order.add(_key(row)), _summed(book.digest, _hash(row), 1)))
    return Narrative(
        rows=narrative.rows.set(saying.position, row),
        by_content=narrative.by_content.set(row.content, saying.position),
        books=books,
        sessions=narrative.sessions.set(saying.session_id, own.add((saying.seq, saying.position))),
    )


def _removed(narrative: Narrative, row: Row) -> Narrative:
    saying = row.saying
    books = narrative.books
    for name in _books_of(row):
        book = books[name]
        books = books.set(name, Book(book.order.remove(_key(row)), _summed(book.digest, _hash(row), -1)))
    own = narrative.sessions[saying.session_id].remove((saying.seq, saying.position))
    return Narrative(
        rows=narrative.rows.delete(saying.position),
        by_content=narrative.by_content.delete(row.content),
        books=books,
        sessions=narrative.sessions.set(saying.session_id, own),
    )


def _exchanged(narrative: Narrative, row: Row, changed: Row) -> Narrative:
    """The same row with other copies: it keeps its place."""
    books = narrative.books
    if row.claimed_at != changed.claimed_at:
        for name in _books_of(row):
            book = books[name]
            total = _summed(_summed(book.digest, _hash(row), -1), _hash(changed), 1)
            books = books.set(name, replace(book, digest=total))
    return replace(narrative, rows=narrative.rows.set(row.saying.position, changed), books=books)


def _book(narrative: Narrative, task_id: str | None) -> Book:
    return narrative.books.get(_WHOLE if task_id is None else task_id, Book())


def _books_of(row: Row) -> tuple[str, ...]:
    return (_WHOLE,) if row.task_id is None else (_WHOLE, row.task_id)


def _key(row: Row) -> tuple[int, int, int]:
    return (row.anchor, row.saying.seq, row.saying.position)


def _key_before(narrative: Narrative, before: int | None) -> tuple[int, int, int] | None:
    if before is None:
        return None
    row = narrative.rows.get(before)
    return (before, -1, 0) if row is None else _key(row)  # a row that has been unsaid stood at about its position


def _hash(row: Row) -> bytes:
    saying = row.saying
    return _sha256([row.kind, row.text, row.claimed_at, saying.actor, row.task_id, saying.key])


def _summed(total: bytes, part: bytes, sign: int) -> bytes:
    value = int.from_bytes(total, "big") + sign * int.from_bytes(part, "big")
    return (value % _MODULUS).to_bytes(32, "big")


def _sha256(values: list[Any]) -> bytes:
    return hashlib.sha256(json.dumps(values, separators=(",", ":")).encode()).digest()
