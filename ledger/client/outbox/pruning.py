"""Makes room in an outbox: what was acknowledged longest ago goes first, and nothing else ever goes."""

from __future__ import annotations

from ledger.errors import StorageFull
from ledger.events.kinds import COMPACTION, MESSAGE, OUTPUT, TOOL_CALL, TOOL_RESULT
from ledger.store.outbox_file import Connection, OutboxFile

ROWS_AT_ONCE = 2000

# An opening stays as long as its session: the server may have to be told again
_SAID_ALONG_THE_WAY = (OUTPUT, MESSAGE, TOOL_CALL, TOOL_RESULT, COMPACTION)  # all that a kept session may lose
_ACKNOWLEDGED = (
    "SELECT position FROM events JOIN sending USING (stream_n) WHERE seq >= 0 AND seq <= sent_seq AND verified = 1"
    f" AND (NOT kept OR kind IN ({', '.join(map(repr, _SAID_ALONG_THE_WAY))}))"
)


def make_room(file: OutboxFile) -> bool:
    """Drops some of the oldest acknowledged events; False where there are none, or the disk has no room to do so."""
    try:
        with file.transaction() as db:
            return _drop(db, _ACKNOWLEDGED + " ORDER BY position LIMIT ?", (ROWS_AT_ONCE,)) > 0
    except StorageFull:
        return False


def drop_older(file: OutboxFile, than: int, *, forgotten: int) -> None:
    """Drops acknowledged events that were recorded before `than` (ns), and sessions of which nothing waits and that
    ended before then, or were silent since before `forgotten`."""
    with file.transaction() as db:
        _drop(db, _ACKNOWLEDGED + " AND recorded_at < ?", (than,))
        ended = db.execute(
            "SELECT stream_n FROM streams JOIN sending USING (stream_n) WHERE last_recorded_at < iif(has_end, ?, ?)"
            " AND NOT kept AND opening_sent AND end_sent >= has_end AND verified AND sent_seq >= high_seq",
            (than, forgotten),
        ).fetchall()
        for table in ("events", "sending", "streams"):
            db.executemany(f"DELETE FROM {table} WHERE stream_n = ?", ended)
        db.execute("DELETE FROM roots WHERE root_n NOT IN (SELECT root_n FROM streams)")


def _drop(db: Connection, which: str, values: tuple[int, ...]) -> int:
    return db.execute(f"DELETE FROM events WHERE position IN ({which})", values).rowcount
