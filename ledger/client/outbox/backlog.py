"""What a sender reads of an outbox and marks in it: what waits, what was acknowledged, what the server refused."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ledger.client.outbox import letters, pruning
from ledger.client.outbox.letters import DeadLetter
from ledger.events.model import END_SEQ, OPENING_SEQ, NewEvent
from ledger.store.outbox_file import OutboxFile

KEPT_S = 7 * 24 * 3600  # how long what was acknowledged can be sent again
FORGOTTEN_S = 90 * 24 * 3600  # how long a session without an end may be silent, and still go on with its next seq

_HEADROOM_BYTES = 4 * 2**20  # a sender may write where emitters find the file full: it is what makes room
_WAITS = "(high_seq > sent_seq OR NOT opening_sent OR has_end > end_sent OR NOT verified) AND refused_code IS NULL"
_EVENT = "seq, kind, actor, payload, digest, at, extra"


class Waiting(msgspec.Struct, frozen=True):
    """A session of which something waits to be sent. `ended`: its result is among it."""

    stream_n: int
    session_id: str
    opening_sent: bool
    high_seq: int
    sent_seq: int
    turn: int
    ended: bool
    verified: bool

    @property
    def is_only_doubted(self) -> bool:
        """Nothing new waits: it is only to be asked whether the server still has what it acknowledged."""
        return not self.verified and self.opening_sent and not self.ended and self.sent_seq >= self.high_seq


class Refusal(msgspec.Struct, frozen=True):
    """A session that the server would not take, and why; what was emitted to it waits until it is retried."""

    session_id: str
    code: str
    detail: str


class Standing(msgspec.Struct, frozen=True):
    """How an outbox stands. `waiting` counts events and results that were not acknowledged, `oldest` is when the
    first of them was emitted (ns); `kept` counts what was acknowledged and can still be sent again."""

    sessions: int
    waiting: int
    oldest: int | None
    kept: int
    dead_letters: int
    refused: list[Refusal]
    bytes: int


class Backlog:
    """The sender's side of the outbox at `path`, which must have room of `bytes_max`. `clock` gives ns.

    A mark may be lost when the machine stops: then something is sent once more, which changes nothing.
    """

    def __init__(self, path: Path, *, bytes_max: int, clock: Callable[[], int] = time.time_ns) -> None:
        self._file = OutboxFile(path, bytes_max=bytes_max + _HEADROOM_BYTES, durable=False)
        self._clock = clock

    def close(self) -> None:
        self._file.close()

    # What waits

    def waiting(self) -> list[Waiting]:
        """Sessions of which something waits, the oldest first."""
        with self._file.reading() as db:
            rows = db.execute(
                "SELECT stream_n, stream, opening_sent, high_seq, sent_seq, turn, has_end > end_sent, verified"
                f" FROM streams JOIN sending USING (stream_n) WHERE {_WAITS} ORDER BY stream_n"
            ).fetchall()
        return [
            Waiting(n, session_id, bool(opened), high_seq, sent_seq, turn, bool(ended), bool(verified))
            for n, session_id, opened, high_seq, sent_seq, turn, ended, verified in rows
        ]

    def is_drained(self, session_id: str | None = None) -> bool:
        """True where nothing waits: of one session, or of all."""
        with self._file.reading() as db:
            row = db.execute(
                f"SELECT 1 FROM streams JOIN sending USING (stream_n) WHERE {_WAITS}"
                " AND stream = coalesce(?, stream) LIMIT 1",
                (session_id,),
            ).fetchone()
        return row is None

    def opening(self, session: Waiting) -> bytes | None:
        """The fields that the session was opened with, as JSON; None where it was not opened here."""
        with self._file.reading() as db:
            row = db.execute(
                "SELECT payload FROM events WHERE stream_n = ? AND seq = ?", (session.stream_n, OPENING_SEQ)
            ).fetchone()
        return None if row is None else bytes(row[0])

    def batch(self, session: Waiting, *, bytes_max: int, events_max: int) -> list[NewEvent]:
        """The next events of a session: at least one if any waits, else as many as weigh `bytes_max` together."""
        events: list[NewEvent] = []
        weight = 0
        with self._file.reading() as db:
            cursor = db.execute(
                f"SELECT {_EVENT} FROM events WHERE stream_n = ? AND seq > ? AND seq < ? ORDER BY seq LIMIT ?",
                (session.stream_n, session.sent_seq, END_SEQ, events_max),
            )
            for row in cursor:
                event = NewEvent(*row)
                weight += len(event.payload) + len(event.extra or b"")
                if events and weight > bytes_max:
                    break
                events.append(event)
            cursor.close()
        return events

    def end(self, session: Waiting) -> NewEvent | None:
        with self._file.reading() as db:
            row = db.execute(
                f"SELECT {_EVENT} FROM events WHERE stream_n = ? AND seq = ?", (session.stream_n, END_SEQ)
            ).fetchone()
        return None if row is None else NewEvent(*row)

    # What became of it

    def opening_acknowledged(self, session: Waiting) -> None:
        self._mark(session, "opening_sent = 1")

    def acknowledged(self, session: Waiting, up_to_seq: int) -> None:
        """The server has everything of this session up to `up_to_seq`, as far as it had been read."""
        with self._file.transaction() as db:
            db.execute(
                "UPDATE sending SET sent_seq = max(sent_seq, ?) WHERE stream_n = ? AND turn = ?",
                (up_to_seq, session.stream_n, session.turn),
            )

    def end_acknowledged(self, session: Waiting) -> None:
        self._mark(session, "end_sent = 1")

    def bury(self, session: Waiting, events: Sequence[tuple[NewEvent, str, str]]) -> None:
        """Takes events out of the queue, each with a code and the reason."""
        with self._file.transaction() as db:
            for event, code, detail in events:
                letters.bury(db, session.session_id, event, code, detail, self._clock())
                db.execute(
                    "DELETE FROM events WHERE stream_n = ? AND seq = ?"
                    " AND NOT (SELECT kept FROM sending WHERE sending.stream_n = events.stream_n)",
                    (session.stream_n, event.seq),
                )

    def refuse(self, session: Waiting, code: str, detail: str) -> None:
        """Sends nothing more of the session until it is retried; the others go on."""
        with self._file.transaction() as db:
            db.execute(
                "UPDATE sending SET refused_code = ?, refused_detail = ? WHERE stream_n = ?",
                (code, detail, session.stream_n),
            )

    # A server that was restored from a backup

    def doubt_all(self) -> None:
        """The server may have lost what it acknowledged: asks of each session how it stands before it goes on."""
        with self._file.transaction() as db:
            db.execute("UPDATE sending SET verified = 0 WHERE opening_sent AND verified")

    def verified(self, session: Waiting, high_seq: int) -> None:
        """The server holds the session up to `high_seq`: what lies behind is sent again, and the result too."""
        self._mark(session, "verified = 1, end_sent = 0, turn = turn + 1, sent_seq = min(sent_seq, ?)", high_seq)

    def lost(self, session: Waiting) -> None:
        """The server does not know the session any more: all that is kept of it is sent again."""
        self._mark(session, "verified = 1, opening_sent = 0, end_sent = 0, turn = turn + 1, sent_seq = -1")

    def missing(self, session: Waiting, ranges: Sequence[tuple[int, int]]) -> bool:
        """Sends again what is kept of the ranges that the server misses; False if nothing is."""
        with self._file.transaction() as db:
            for first, last in ranges:
                row = db.execute(
                    "SELECT min(seq) FROM events JOIN sending USING (stream_n)"
                    " WHERE stream_n = ? AND seq BETWEEN ? AND ? AND seq <= sent_seq",
                    (session.stream_n, first, last),
                ).fetchone()
                if row[0] is not None:
                    db.execute(
                        "UPDATE sending SET sent_seq = ?, turn = turn + 1 WHERE stream_n = ?",
                        (row[0] - 1, session.stream_n),
                    )
                    return True
        return False

    # For people

    def drop_old(self) -> None:
        """Drops what was acknowledged longer than KEPT_S ago, and sessions of which none was heard for FORGOTTEN_S,
        ended or not."""
        now = self._clock()
        pruning.drop_older(self._file, now - KEPT_S * 10**9, forgotten=now - FORGOTTEN_S * 10**9)

    def dead_letters(self, limit: int = 100) -> list[DeadLetter]:
        """The newest first."""
        with self._file.reading() as db:
            return letters.read(db, limit)

    def discard_dead_letters(self) -> int:
        """Removes them all for good; how many they were."""
        with self._file.transaction() as db:
            return letters.discard_all(db)

    def forgive(self) -> int:
        """Lets the sessions that were refused be sent again; how many they were."""
        with self._file.transaction() as db:
            return db.execute(
                "UPDATE sending SET refused_code = NULL, refused_detail = NULL WHERE refused_code IS NOT NULL"
            ).rowcount

    def standing(self) -> Standing:
        with self._file.reading() as db:
            waiting, oldest, kept = db.execute(
                "SELECT count(*) FILTER (WHERE NOT sent), min(recorded_at) FILTER (WHERE NOT sent),"
                " count(*) FILTER (WHERE sent) FROM (SELECT recorded_at,"
                f" CASE seq WHEN {END_SEQ} THEN end_sent ELSE seq <= sent_seq END AS sent"
                f" FROM events JOIN sending USING (stream_n) WHERE seq <> {OPENING_SEQ})"
            ).fetchone()
            [sessions] = db.execute("SELECT count(*) FROM sending").fetchone()
            [dead] = db.execute("SELECT count(*) FROM dead_letters").fetchone()
            refused = db.execute(
                "SELECT stream, refused_code, refused_detail FROM streams JOIN sending USING (stream_n)"
                " WHERE refused_code IS NOT NULL ORDER BY stream_n"
            ).fetchall()
            [size] = db.execute(
                "SELECT (page_count - freelist_count) * page_size"
                " FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
            ).fetchone()
        return Standing(sessions, waiting, oldest, kept, dead, [Refusal(*row) for row in refused], size)

    def _mark(self, session: Waiting, change: str, *values: int) -> None:
        with self._file.transaction() as db:
            db.execute(f"UPDATE sending SET {change} WHERE stream_n = ?", (*values, session.stream_n))
