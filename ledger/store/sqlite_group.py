"""What one transaction of a SQLite ledger writes, as statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain

from ledger.store.sqlite_file import Statement
from ledger.store.staging import Group, KnownStream, Row

_ROWS_AT_ONCE = (256, 64, 16, 4, 1)  # few statement texts, so that SQLite's prepared ones are used again


def statements(group: Group) -> list[Statement]:
    """What makes the group's streams, events and losers durable."""
    return [
        *_inserts("INSERT INTO roots VALUES ", [(n, root) for root, n in group.roots.items()]),
        *_inserts(
            "INSERT INTO streams VALUES ",
            [_stream_row(known) for known in group.streams.values()],
            " ON CONFLICT (stream_n) DO UPDATE SET (high_seq, events, last_recorded_at)"
            " = (excluded.high_seq, excluded.events, excluded.last_recorded_at)",
        ),
        *_inserts("INSERT INTO events VALUES ", group.rows),
        *_inserts("INSERT OR IGNORE INTO losers VALUES ", group.losers),
    ]


def _stream_row(known: KnownStream) -> Row:
    return (
        known.stream_n,
        known.stream,
        known.root_n,
        known.task_id,
        known.saddle,
        int(known.contiguous),
        known.high_seq,
        known.events,
        known.last_recorded_at,
    )


def _inserts(head: str, rows: Sequence[Row], tail: str = "") -> Iterator[Statement]:
    """The rows as few multi-row statements: each runs in the driver's thread without the interpreter's lock."""
    start = 0
    while start < len(rows):
        count = next(n for n in _ROWS_AT_ONCE if n <= len(rows) - start)
        values = chain.from_iterable(rows[start : start + count])
        yield _insert_text(head, len(rows[0]), count, tail), list(values)
        start += count


@cache
def _insert_text(head: str, columns: int, count: int, tail: str) -> str:
    one = "(" + ", ".join("?" * columns) + ")"
    return head + ", ".join([one] * count) + tail
