"""opencode's database (SQLite, in later versions): the tables `session`, `message` and `part`.

It is opened to read and never written, and nothing appears beside it: where another user owns it, where it lies on
read-only ground, or where opening it would make the files that a write-ahead log needs, SQLite is told that nobody
writes it. What stands in a log that nobody has open then waits until opencode has taken it in.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

import orjson

from ledger.transcripts.model import Report, Row
from ledger.transcripts.opencode import Message, OpencodeTranscript, SessionRecord

TABLES = frozenset({"session", "message", "part"})
BUSY_S = 5.0

_SESSIONS = """
    SELECT id, parent_id, title, directory, time_created,
           (SELECT count(*) || ' ' || coalesce(max(time_updated), 0) || ' ' FROM part WHERE session_id = session.id)
        || (SELECT count(*) || ' ' || coalesce(max(time_updated), 0) FROM message WHERE session_id = session.id)
    FROM session ORDER BY time_created, id
"""
_UPDATED = """
    SELECT id, max(time_updated, (SELECT coalesce(max(time_updated), 0) FROM part WHERE session_id = session.id),
                   (SELECT coalesce(max(time_updated), 0) FROM message WHERE session_id = session.id))
    FROM session
"""
_WAL_VERSION = 2  # in the header, where a file says how it is to be read


class UnreadableDatabase(OSError):
    """The file is a database that cannot be read as opencode's."""


def is_opencode(path: Path) -> bool:
    """True where the file is a SQLite database with opencode's tables."""
    try:
        with path.open("rb") as file:
            if file.read(16) != b"SQLite format 3\0":
                return False
        with _opened(path) as db:
            names = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except OSError:
        return False
    return names >= TABLES


def sessions(path: Path) -> list[tuple[SessionRecord, str]]:
    """The sessions, parents before children, each with a text that differs once anything in it has changed. Raises
    UnreadableDatabase."""
    with _opened(path) as db:
        rows = db.execute(_SESSIONS).fetchall()
    parents = {id_: parent_id for id_, parent_id, *_ in rows}
    records = [
        (SessionRecord(id_, _root(id_, parents), title or "", created or 0, directory, parent_id), str(changes))
        for id_, parent_id, title, directory, created, changes in rows
    ]
    return sorted(records, key=lambda pair: _depth(pair[0].id, parents))


def updated_ms(path: Path) -> dict[str, int]:
    """When each session was last written to, itself or anything in it (Unix ms). Raises UnreadableDatabase."""
    with _opened(path) as db:
        return {id_: updated or 0 for id_, updated in db.execute(_UPDATED)}


def open_transcript(path: Path, record: SessionRecord, report: Report) -> OpencodeTranscript:
    """One session of the database. Records that are not JSON go to `report`."""
    return OpencodeTranscript(path, record, _messages(path, record.id, report), report)


def _messages(path: Path, session_id: str, report: Report) -> Iterator[Message]:
    def parsed(id_: str, data: str | bytes) -> Row | None:
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            report.bad_line(path, 0, f"record {id_}: {error}")
            return None
        return value if isinstance(value, dict) else None

    with _opened(path) as db:
        parts: dict[str, list[tuple[str, Row]]] = {}
        query = "SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY message_id, id"
        for id_, message_id, data in db.execute(query, (session_id,)):
            if (part := parsed(id_, data)) is not None:
                parts.setdefault(message_id, []).append((id_, {**part, "id": id_}))
        query = "SELECT id, time_created, data FROM message WHERE session_id = ? ORDER BY time_created, id"
        for id_, created, data in db.execute(query, (session_id,)):
            if (info := parsed(id_, data)) is not None:
                yield Message(id_, created_ms(info, created), info, parts.get(id_, []))


def created_ms(info: Row, otherwise: int | None) -> int:
    """When a message was made, as it says itself: a fork keeps that, but not the row's own time."""
    times = info.get("time")
    created = times.get("created") if isinstance(times, dict) else None
    return created if isinstance(created, int) else otherwise or 0


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    address = f"file:{quote(str(path.absolute()))}?mode=ro"
    try:
        try:
            db = _connected(address + ("&immutable=1" if _is_foreign(path) or _would_leave_files(path) else ""))
        except sqlite3.OperationalError:
            db = _connected(address + "&immutable=1")
        with closing(db):
            yield db
    except sqlite3.Error as error:
        raise UnreadableDatabase(f"{path}: {error}") from error


def _is_foreign(path: Path) -> bool:
    """Whether another user owns it: side files that we made would be ones that its owner cannot write."""
    try:
        return path.stat().st_uid != os.geteuid()
    except OSError:  # then opening says why
        return False


def _would_leave_files(path: Path) -> bool:
    """Whether a reader would make the side files of a write-ahead log, as nobody has them open now."""
    try:
        with path.open("rb") as file:
            header = file.read(20)
    except OSError:
        return False
    sides = (path.with_name(path.name + end) for end in ("-wal", "-shm"))
    return header[19:20] == bytes([_WAL_VERSION]) and not all(side.exists() for side in sides)


def _connected(address: str) -> sqlite3.Connection:
    db = sqlite3.connect(address, uri=True, timeout=BUSY_S)
    try:
        db.execute("PRAGMA query_only = 1")
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        db.close()
        raise
    return db


def _root(id_: str, parents: dict[str, str | None]) -> str:
    return _ancestors(id_, parents)[-1]


def _depth(id_: str, parents: dict[str, str | None]) -> int:
    return len(_ancestors(id_, parents))


def _ancestors(id_: str, parents: dict[str, str | None]) -> list[str]:
    """The session, its parent, and so on up; a ring ends where it closes."""
    line = [id_]
    while (above := parents.get(line[-1])) is not None and above not in line:
        line.append(above)
    return line
