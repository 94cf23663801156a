"""Rows of Claude Code transcripts, written for the tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ledger.transcripts import claude_code
from ledger.transcripts.model import BadLine, Event, Report

SESSION = "11111111-2222-3333-4444-555555555555"
AT = "2026-03-01T10:00:00.000Z"

Row = dict[str, Any]


def user(content: Any, **fields: Any) -> Row:
    return _row("user", message={"role": "user", "content": content}, **fields)


def assistant(*blocks: Row, id: str = "msg_1", output_tokens: int = 1, **fields: Any) -> Row:
    usage = {
        "input_tokens": 3,
        "cache_creation_input_tokens": 100,
        "cache_read_input_tokens": 2000,
        "output_tokens": output_tokens,
    }
    message = {"id": id, "model": "claude-test-1", "role": "assistant", "content": list(blocks), "usage": usage}
    return _row("assistant", message=message, **fields)


def system(subtype: str, **fields: Any) -> Row:
    return _row("system", subtype=subtype, **fields)


def text(value: str) -> Row:
    return {"type": "text", "text": value}


def call(name: str, args: Row, id: str = "toolu_1") -> Row:
    return {"type": "tool_use", "id": id, "name": name, "input": args}


def result(content: Any, id: str = "toolu_1", **fields: Any) -> Row:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **fields}


def _row(type_: str, **fields: Any) -> Row:
    row = {
        "type": type_,
        "sessionId": SESSION,
        "cwd": "/home/dev/My App",
        "isSidechain": False,
        "uuid": "u",
        "timestamp": AT,
    }
    return {name: value for name, value in (row | fields).items() if value is not None}


def as_lines(*rows: Row) -> bytes:
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


def write(path: Path, *rows: Row) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(as_lines(*rows))
    return path


def read(path: Path) -> tuple[dict[str, list[Event]], list[BadLine], dict[str, int]]:
    """The events of each session, the bad lines, and the skipped rows by type."""
    bad: list[BadLine] = []
    report = Report(bad.append)
    events: dict[str, list[Event]] = {}
    for batch in claude_code.open_transcript(path, report).batches():
        events.setdefault(batch.session.session_id, []).extend(batch.events)
    return events, bad, dict(report.skipped)


def said(*rows: Row) -> list[tuple[str, str, Row]]:
    """Kind, actor and payload of what the rows say."""
    from ledger.transcripts.claude_rows import said_by

    return [event for row in rows for event in said_by(row, lambda type_: None)]
