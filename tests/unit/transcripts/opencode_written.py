"""opencode's records, written for the tests: into a database, or into the older files."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.unit.transcripts.reading_all import Row, write_json

START_MS = 1_772_359_200_000


def id_at(prefix: str, ms: int, counter: int = 0) -> str:
    """An id as opencode makes them: 48 bits of time, then 14 random characters."""
    return f"{prefix}_{(ms * 4096 + counter) % 2**48:012x}{'AbCdEfGhIjKlMn'}"


SESSION = "ses_0000000000ffAbCdEfGhIjKlMn"


class Records:
    """A session with its messages and parts. Times are given in ms after START_MS."""

    def __init__(self, id_: str = SESSION, created: int = 0, **fields: Any) -> None:
        self.session = {
            "id": id_,
            "projectID": "p",
            "title": "Fix it",
            "directory": "/home/dev/app",
            "time": {"created": START_MS + created, "updated": START_MS + created},
            **fields,
        }
        self.messages: list[Row] = []
        self.parts: list[Row] = []

    def message(self, role: str, at: int, *, made_at: int | None = None, id_: str = "", **fields: Any) -> str:
        message_id = id_ or id_at("msg", START_MS + (at if made_at is None else made_at))
        times = {"created": START_MS + at, **fields.pop("time", {})}
        self.messages.append(
            {"id": message_id, "sessionID": self.session["id"], "role": role, "time": times, **fields}
        )
        return message_id

    def part(self, message_id: str, at: int, type_: str, *, id_: str = "", **fields: Any) -> str:
        part_id = id_ or id_at("prt", START_MS + at)
        owner = {"id": part_id, "sessionID": self.session["id"], "messageID": message_id}
        self.parts.append({**owner, "type": type_, **fields})
        return part_id

    def into_files(self, storage: Path) -> Path:
        """The path of the session's record."""
        for message in self.messages:
            write_json(storage / "message" / self.session["id"] / f"{message['id']}.json", message)
        for part in self.parts:
            write_json(storage / "part" / part["messageID"] / f"{part['id']}.json", part)
        return write_json(storage / "session" / "p" / f"{self.session['id']}.json", self.session)


def into_database(path: Path, *all_records: Records, updated: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript(
            """
            CREATE TABLE IF NOT EXISTS session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT,
                title TEXT, time_created INTEGER, time_updated INTEGER);
            CREATE TABLE IF NOT EXISTS message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER,
                time_updated INTEGER, data TEXT);
            CREATE TABLE IF NOT EXISTS part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT,
                time_created INTEGER, time_updated INTEGER, data TEXT);
            """
        )
        for records in all_records:
            session = records.session
            created = session["time"]["created"]
            db.execute(
                "REPLACE INTO session VALUES (?, 'p', ?, ?, ?, ?, ?)",
                (session["id"], session.get("parentID"), session["directory"], session["title"], created, updated),
            )
            for one in records.messages:
                row = (one["id"], one["sessionID"], one["time"]["created"], updated, _data(one))
                db.execute("REPLACE INTO message VALUES (?, ?, ?, ?, ?)", row)
            for one in records.parts:
                row = (one["id"], one["messageID"], one["sessionID"], updated, updated, _data(one))
                db.execute("REPLACE INTO part VALUES (?, ?, ?, ?, ?, ?)", row)
    return path


def _data(record: Row) -> str:
    about = ("id", "sessionID", "messageID")
    return json.dumps({name: value for name, value in record.items() if name not in about})


def conversation(records: Records | None = None, *, after: int = 0) -> Records:
    """A prompt, and an answer of one step with a thought, a command and a text."""
    records = records or Records()
    asked = records.message("user", after + 10)
    records.part(asked, after + 11, "text", text="Fix it")
    answer = records.message(
        "assistant", after + 20, modelID="m-1", providerID="v", time={"completed": START_MS + 90}
    )
    records.part(answer, after + 21, "step-start")
    records.part(answer, after + 22, "reasoning", text="hm", time={"start": START_MS + 22, "end": START_MS + 23})
    state = {
        "status": "completed",
        "input": {"command": "ls"},
        "output": "a.py",
        "metadata": {"exit": 0},
        "time": {"start": START_MS + 30, "end": START_MS + 31},
    }
    records.part(answer, after + 30, "tool", tool="bash", callID="c1", state=state)
    records.part(answer, after + 40, "text", text="Done.", time={"start": START_MS + 40, "end": START_MS + 41})
    tokens = {"input": 100, "output": 20, "reasoning": 5, "cache": {"read": 300, "write": 40}}
    records.part(answer, after + 50, "step-finish", reason="stop", cost=0.5, tokens=tokens)
    return records
