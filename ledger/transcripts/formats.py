"""The formats that are known, and how a file's content tells which of them it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import msgspec
import orjson

from ledger.transcripts import (
    claude_code,
    claude_stream,
    codex,
    codex_stream,
    gemini,
    opencode_db,
    opencode_files,
    opencode_parts,
    opencode_stream,
)
from ledger.transcripts.model import Report, Row
from ledger.transcripts.reading import LineReader

LINES_LOOKED_AT = 200
SUFFIXES = frozenset({".jsonl", ".json", ".db"})


class Format(msgspec.Struct, frozen=True):
    """`prefix` begins the ids of the tasks that sessions of this agent become. `edits_records`: the agent writes its
    records over, so what was read first stands; where it does not, other content means another history."""

    name: str
    agent: str
    prefix: str
    open_transcript: Callable[..., Any]
    edits_records: bool = False


CLAUDE_CODE = Format("transcript", claude_code.AGENT, "cc", claude_code.open_transcript)
CLAUDE_STREAM = Format("stream", claude_code.AGENT, "cc", claude_stream.open_transcript)
CODEX = Format("rollout", codex.AGENT, "codex", codex.open_transcript)
CODEX_STREAM = Format("stream", codex.AGENT, "codex", codex_stream.open_transcript)
GEMINI = Format("chat", gemini.AGENT, "gemini", gemini.open_transcript, edits_records=True)
OPENCODE_DB = Format("database", opencode_parts.AGENT, "oc", opencode_db.open_transcript, edits_records=True)
OPENCODE_FILES = Format("storage", opencode_parts.AGENT, "oc", opencode_files.open_transcript, edits_records=True)
OPENCODE_STREAM = Format("stream", opencode_parts.AGENT, "oc", opencode_stream.open_transcript)

AGENTS = (claude_code.AGENT, codex.AGENT, opencode_parts.AGENT, gemini.AGENT)

_CODEX_ROWS = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_CODEX_PRINTS = ("thread.", "turn.", "item.")
_CLAUDE_PRINTS = frozenset({"system", "assistant", "user", "result", "stream_event"})


def places(environment: Collection[tuple[str, str]] | None = None) -> dict[str, list[Path]]:
    """Where each agent keeps its transcripts on this host, by the agent's name; not all of them need be there."""
    variables = dict(os.environ if environment is None else environment)
    home = Path(variables.get("HOME") or Path.home())
    data = Path(variables.get("XDG_DATA_HOME") or home / ".local" / "share")
    codex_home = Path(variables.get("CODEX_HOME") or home / ".codex")
    claude_home = Path(variables.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    return {
        claude_code.AGENT: [claude_home / "projects"],
        codex.AGENT: [codex_home / "sessions", codex_home / "archived_sessions"],
        opencode_parts.AGENT: [data / "opencode"],
        gemini.AGENT: [home / ".gemini" / "tmp"],
    }


def format_of(path: Path) -> Format | None:
    """The format of a file, by its content, or None where it is none that is known. Raises OSError."""
    if path.suffix == ".db":
        return OPENCODE_DB if opencode_db.is_opencode(path) else None
    if path.suffix == ".json":
        return _format_of_document(path)
    for line in LineReader(path, Report()):
        for row in line.rows:
            if (found := _format_of_row(row)) is not None:
                return found
        if line.number >= LINES_LOOKED_AT:
            break
    return None


def _format_of_document(path: Path) -> Format | None:
    if opencode_files.is_session(path):
        return OPENCODE_FILES
    if path.stat().st_size > gemini.DOCUMENT_BYTES_MAX:
        return None
    try:
        document = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError:
        return None
    is_chat = isinstance(document, dict) and "sessionId" in document and isinstance(document.get("messages"), list)
    return GEMINI if is_chat else None


def _format_of_row(row: Row) -> Format | None:
    type_ = row.get("type")
    if "sessionId" in row and "projectHash" in row:
        return GEMINI
    if type_ in _CODEX_ROWS and "payload" in row:
        return CODEX
    if type_ is None and "id" in row and "timestamp" in row and ("instructions" in row or "git" in row):
        return CODEX  # its first versions
    if not isinstance(type_, str):
        return None
    if type_.startswith(_CODEX_PRINTS):
        return CODEX_STREAM
    if "sessionID" in row and ("part" in row or type_ == "error"):
        return OPENCODE_STREAM
    if "session_id" in row and type_ in _CLAUDE_PRINTS:
        return CLAUDE_STREAM
    return CLAUDE_CODE if "sessionId" in row else None
