"""What emitters do with an outbox: open sessions, append to them, end them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from ledger.client.outbox import letters, pruning
from ledger.errors import NotFound, SessionElsewhere, StorageFull, StreamMoved
from ledger.events.content import given, payload_object, same_payload
from ledger.events.decode import new_event
from ledger.events.ids import checked_id
from ledger.events.kinds import RESULT, SESSION_OPENED, is_decisive
from ledger.events.model import END_SEQ, NO_EVENTS, OPENING_SEQ, NewEvent, Recorded, task_root
from ledger.store.outbox_file import Connection, OutboxFile

BYTES_MAX = 256 * 2**20
NEXT_SEQ = -3  # in place of a seq: the next of the session

_ASK_HELD_NS = 120 * 10**9
_INSERT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

T = TypeVar("T")


class OutboxFull(StorageFull):
    """Nothing more can be kept: all that fills the outbox still waits for the server, or the disk is full."""

    code = "outbox_full"
    hint = "Start the server so that it can drain, or make room on its disk; `ledgerd outbox` shows what waits."


class Added(msgspec.Struct, frozen=True):
    """What became of events that were added: the seq of each, and how many were there already, with the same content
    or with other (`conflicts`; those are among the dead letters)."""

    seqs: list[int]
    duplicates: int = 0
    conflicts: int = 0


class _Stream(msgspec.Struct, frozen=True):
    stream_n: int
    root_n: int
    high_seq: int


def default_path() -> Path:
    """LEDGERD_OUTBOX, else `ledgerd/outbox.db` in the state folder of the XDG base directory rules."""
    if named := os.environ.get("LEDGERD_OUTBOX"):
        return Path(named)
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "ledgerd" / "outbox.db"


class Outbox:
    """The outbox at `path`, made if it is not there; threads may share it, and processes each have their own.

    What any method wrote is durable when it returns. Methods raise StorageError where the file fails, OutboxFull
    where nothing more fits into `bytes_max`, and NotFound for a session that is not in this outbox. `clock` gives ns.
    """

    def __init__(
        self, path: str | Path, *, bytes_max: int = BYTES_MAX, clock: Callable[[], int] = time.time_ns
    ) -> None:
        self._file = OutboxFile(Path(path).expanduser().absolute(), bytes_max=bytes_max)
        self._clock = clock

    @property
    def path(self) -> Path:
        return self._file.path

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Outbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open_session(self, session_id: str, fields: Mapping[str, Any], *, kept: bool = False) -> bool:
        """Opens a session, of which the server learns with the first chunk; `fields` are those of `OpenIn`. True if
        it is new here. A `kept` one is never forgotten: it can be read back with `kept`. Raises SessionElsewhere
        where it is open under another `task_id`."""
        session_id = checked_id(session_id, "session_id")
        opening = new_event(OPENING_SEQ, SESSION_OPENED, "", given(fields))
        opened = payload_object(opening.payload)
        task_id = opened.get("task_id") or (opened.get("task") or {}).get("id") or session_id

        def write(db: Connection) -> bool:
            row = db.execute(
                "SELECT payload FROM streams JOIN events USING (stream_n) WHERE stream = ? AND seq = ?",
                (session_id, OPENING_SEQ),
            ).fetchone()
            if row is not None:
                _refuse_other_task(session_id, payload_object(row[0]), opened)
                return False
            if _find(db, session_id) is not None:
                return False
            contiguous = bool(opened.get("contiguous"))
            stream = self._register(db, session_id, str(task_id), contiguous=contiguous, kept=kept)
            self._insert(db, session_id, stream, [opening])
            return True

        return self._write(write)

    def adopt(self, session_id: str, task_id: str, *, high_seq: int = -1) -> bool:
        """Takes in a session that is open on the server and stands at `high_seq` there; False if it is here."""
        session_id = checked_id(session_id, "session_id")

        def write(db: Connection) -> bool:
            db.execute("DELETE FROM asks WHERE session_id = ?", (session_id,))
            if _find(db, session_id) is not None:
                return False
            self._register(db, session_id, task_id, opening_sent=True, high_seq=high_seq)
            return True

        return self._write(write)

    def has_session(self, session_id: str) -> bool:
        with self._file.reading() as db:
            return _find(db, session_id) is not None

    def add(self, session_id: str, events: Sequence[NewEvent], *, expected_seq: int | None = None) -> Added:
        """Appends events to a session. NEXT_SEQ as a seq stands for the next one; an event with a seq of its own that
        is there already counts as a duplicate, or goes to the dead letters where its content is another. With
        `expected_seq`, the last seq that the writer has seen (-1: none), it is a conditional append: raises
        StreamMoved, and nothing was added, where the session stands elsewhere."""

        def write(db: Connection) -> Added:
            stream = _found(db, session_id)
            if expected_seq is not None and stream.high_seq != expected_seq:
                raise StreamMoved(session_id, expected_seq, stream.high_seq)
            if any(event.seq != NEXT_SEQ for event in events):
                return self._add_numbered(db, session_id, stream, events)
            first = stream.high_seq + 1
            self._insert(db, session_id, stream, [replace(e, seq=first + n) for n, e in enumerate(events)])
            return Added(list(range(first, first + len(events))))

        return self._write(write)

    def end(self, session_id: str, event: NewEvent) -> bool:
        """Puts a terminal result into the session's last slot. The first one counts: False if it was taken."""

        def write(db: Connection) -> bool:
            stream = _found(db, session_id)
            marked = db.execute(
                "UPDATE sending SET has_end = 1 WHERE stream_n = ? AND has_end = 0", (stream.stream_n,)
            )
            if not marked.rowcount:
                return False
            self._insert(db, session_id, stream, [replace(event, seq=END_SEQ)])
            return True

        return self._write(write)

    def last_state(self, session_id: str) -> str | None:
        """The state that was pushed last for a session; None if none was, or it is not kept any more."""
        with self._file.reading() as db:
            row = db.execute(
                "SELECT payload FROM events WHERE stream_n = ? AND kind = ? ORDER BY seq DESC LIMIT 1",
                (_found(db, session_id).stream_n, RESULT),
            ).fetchone()
        return None if row is None else payload_object(row[0]).get("state")

    def kept(
        self, session_id: str | None = None, *, kinds: Sequence[str] = (), after_seq: int = NO_EVENTS
    ) -> list[Recorded]:
        """What this outbox holds of its kept sessions, or of one, in the order in which it was emitted: all of it or
        only some `kinds`, and of each session what lies behind `after_seq`. The openings are among it; `root` is that
        of the task, as if it had no goal."""
        with self._file.reading() as db:
            rows = db.execute(
                "SELECT position, 0, stream, seq, kind, actor, at, recorded_at, task_id, root, payload, digest, extra"
                " FROM events JOIN streams USING (stream_n) JOIN sending USING (stream_n)"
                " JOIN roots ON roots.root_n = streams.root_n WHERE kept AND stream = coalesce(?, stream) AND seq > ?"
                f" AND (NOT ? OR kind IN ({', '.join('?' * len(kinds))})) ORDER BY position",
                (session_id, after_seq, bool(kinds), *kinds),
            ).fetchall()
        return [Recorded(*row) for row in rows]

    def begin_ask(self, new_id: str) -> str:
        """The session id to ask for work with: one whose answer was never known, else `new_id`."""
        now = self._clock()

        def write(db: Connection) -> str:
            left = db.execute("SELECT session_id FROM asks WHERE held_until < ? LIMIT 1", (now,)).fetchone()
            session_id = new_id if left is None else str(left[0])
            db.execute("INSERT OR REPLACE INTO asks VALUES (?, ?)", (session_id, now + _ASK_HELD_NS))
            return session_id

        return self._write(write)

    def end_ask(self, session_id: str, *, answered: bool) -> None:
        """There was no work, or (`answered` is false) no answer: then the next ask asks again with this id."""

        def write(db: Connection) -> None:
            if answered:
                db.execute("DELETE FROM asks WHERE session_id = ?", (session_id,))
            else:
                db.execute("UPDATE asks SET held_until = 0 WHERE session_id = ?", (session_id,))

        self._write(write)

    def revive_dead_letters(self) -> int:
        """Puts all dead letters back into the queue, each under the next seq of its session; how many they were."""

        def write(db: Connection) -> int:
            dead = letters.read(db, -1)[::-1]
            for letter in dead:
                stream = _find(db, letter.session_id)
                if stream is None:  # it ended, and was forgotten, long ago
                    stream = self._register(db, letter.session_id, letter.session_id, opening_sent=True)
                seq = stream.high_seq + 1
                self._insert(db, letter.session_id, stream, [replace(letter.event, seq=seq)])
            return letters.discard_all(db)

        return self._write(write)

    # Inside one transaction

    def _write(self, work: Callable[[Connection], T]) -> T:
        while True:
            try:
                with self._file.transaction() as db:
                    return work(db)
            except StorageFull as full:
                if not pruning.make_room(self._file):
                    raise OutboxFull(full.detail) from full

    def _register(
        self,
        db: Connection,
        session_id: str,
        task_id: str,
        *,
        contiguous: bool = False,
        opening_sent: bool = False,
        high_seq: int = -1,
        kept: bool = False,
    ) -> _Stream:
        root = task_root(task_id)
        db.execute("INSERT OR IGNORE INTO roots (root) VALUES (?)", (root,))
        [root_n] = db.execute("SELECT root_n FROM roots WHERE root = ?", (root,)).fetchone()
        [stream_n] = db.execute(
            "INSERT INTO streams (stream, root_n, task_id, saddle, contiguous, high_seq, events, last_recorded_at)"
            " VALUES (?, ?, ?, '', ?, ?, 0, ?) RETURNING stream_n",
            (session_id, root_n, task_id, contiguous, high_seq, self._clock()),
        ).fetchone()
        db.execute(
            "INSERT INTO sending VALUES (?, ?, ?, 0, 0, 0, 1, NULL, NULL, ?)",
            (stream_n, opening_sent, high_seq, kept),
        )
        return _Stream(stream_n, root_n, high_seq)

    def _insert(self, db: Connection, session_id: str, stream: _Stream, events: Sequence[NewEvent]) -> None:
        now = self._clock()
        [position] = db.execute(
            "UPDATE counters SET position = position + ? WHERE bucket = 0 RETURNING position - ?",
            (len(events), len(events)),
        ).fetchone()
        high_seq = max([stream.high_seq, *(event.seq for event in events if event.seq != END_SEQ)])
        db.execute(
            "UPDATE streams SET high_seq = ?, events = events + ?, last_recorded_at = ? WHERE stream_n = ?",
            (high_seq, len(events), now, stream.stream_n),
        )
        db.executemany(
            _INSERT,
            [
                (
                    position + n,
                    stream.stream_n,
                    event.seq,
                    stream.root_n,
                    is_decisive(session_id, event.kind),
                    event.at,
                    now,
                    event.digest,
                    event.kind,
                    event.actor,
                    event.extra,
                    event.payload,
                )
                for n, event in enumerate(events, 1)
            ],
        )

    def _add_numbered(self, db: Connection, session_id: str, stream: _Stream, events: Sequence[NewEvent]) -> Added:
        """One by one: each may meet a slot that is taken, by an earlier one of the same call for instance."""
        seqs, duplicates, conflicts = [], 0, 0
        for event in events:
            event = event if event.seq != NEXT_SEQ else replace(event, seq=stream.high_seq + 1)
            seqs.append(event.seq)
            held = db.execute(
                "SELECT kind, actor, payload FROM events WHERE stream_n = ? AND seq = ?",
                (stream.stream_n, event.seq),
            ).fetchone()
            if held is None:
                self._insert(db, session_id, stream, [event])
                if event.seq <= stream.high_seq:
                    _put_below(db, stream, event.seq)
                stream = replace(stream, high_seq=max(stream.high_seq, event.seq))
            elif held[:2] == (event.kind, event.actor) and same_payload(held[2], event.payload):
                duplicates += 1
            else:
                conflicts += 1
                detail = "this outbox holds another event with the same seq"
                letters.bury(db, session_id, event, "conflict", detail, self._clock())
        return Added(seqs, duplicates, conflicts)


def _find(db: Connection, session_id: str) -> _Stream | None:
    row = db.execute("SELECT stream_n, root_n, high_seq FROM streams WHERE stream = ?", (session_id,)).fetchone()
    return None if row is None else _Stream(*row)


def _found(db: Connection, session_id: str) -> _Stream:
    found = _find(db, session_id)
    if found is None:
        raise NotFound(
            f"session {session_id!r} is not in this outbox",
            code="unknown_session",
            hint="Open it first, or set LEDGERD_OUTBOX to the outbox that it was opened with.",
        )
    return found


def _put_below(db: Connection, stream: _Stream, seq: int) -> None:
    db.execute(
        "UPDATE sending SET sent_seq = min(sent_seq, ?), turn = turn + 1 WHERE stream_n = ?",
        (seq - 1, stream.stream_n),
    )


def _refuse_other_task(session_id: str, held: dict[str, Any], asked: dict[str, Any]) -> None:
    one, other = held.get("task_id"), asked.get("task_id")
    if one is not None and other is not None and str(one) != str(other):
        raise SessionElsewhere(f"session {session_id!r} is open under task {one!r}, not {other!r}")
