"""opencode's older storage: a file for each record, below `storage/`.

session/PROJECT/SESSION.json    message/SESSION/MESSAGE.json    part/MESSAGE/PART.json
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson

from ledger.transcripts.model import NoSession, Report, Row
from ledger.transcripts.opencode import Message, OpencodeTranscript, SessionRecord
from ledger.transcripts.opencode_db import created_ms

SESSION_BYTES_MAX = 2**20


def is_session(path: Path) -> bool:
    """True where the file is the record of a session that lies in such a storage."""
    if path.parent.parent.name != "session" or path.stat().st_size > SESSION_BYTES_MAX:
        return False
    record = _loaded(path, Report())
    return record is not None and isinstance(record.get("id"), str) and ("projectID" in record or "time" in record)


def signature(path: Path) -> str:
    """A text that differs once anything in the session has changed."""
    stats = [file.stat() for file in _files(path)]
    return f"{len(stats)} {max(stat.st_mtime_ns for stat in stats)} {sum(stat.st_size for stat in stats)}"


def open_transcript(path: Path, report: Report) -> OpencodeTranscript:
    """The session whose record is the file at `path`. Raises NoSession. Files that are not JSON go to `report`."""
    record = _loaded(path, report)
    if record is None or not isinstance(record.get("id"), str):
        raise NoSession(f"{path}: no session")
    session = SessionRecord(
        id=record["id"],
        root_id=_root(path, record),
        title=str(record.get("title") or ""),
        created_ms=created_ms(record, 0),
        directory=record.get("directory"),
        parent_id=record.get("parentID"),
    )
    return OpencodeTranscript(path, session, _messages(path, session.id, report), report)


def _root(path: Path, record: Row) -> str:
    line = [str(record["id"])]
    while isinstance(above := record.get("parentID"), str) and above not in line:
        line.append(above)
        record = _loaded(path.with_name(f"{above}.json"), Report()) or {}
    return line[-1]


def _messages(path: Path, session_id: str, report: Report) -> Iterator[Message]:
    storage = path.parent.parent.parent
    found = []
    for file in sorted((storage / "message" / session_id).glob("*.json")):
        info = _loaded(file, report)
        if info is not None:
            found.append((created_ms(info, 0), file.stem, info))
    for created, message_id, info in sorted(found, key=lambda one: one[:2]):
        parts = []
        for file in sorted((storage / "part" / message_id).glob("*.json")):
            part = _loaded(file, report)
            if part is not None:
                parts.append((file.stem, part))
        yield Message(message_id, created, info, parts)


def _files(path: Path) -> Iterator[Path]:
    storage = path.parent.parent.parent
    yield path
    for message in (storage / "message" / path.stem).glob("*.json"):
        yield message
        yield from (storage / "part" / message.stem).glob("*.json")


def _loaded(path: Path, report: Report) -> Row | None:
    try:
        value = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError as error:
        report.bad_line(path, 0, f"not JSON: {error}")
        return None
    except FileNotFoundError:  # written over or deleted just now
        return None
    return value if isinstance(value, dict) else None
