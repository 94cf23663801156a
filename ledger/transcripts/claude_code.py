"""Claude Code transcripts: `~/.claude/projects/FOLDER/SESSION.jsonl`, one JSON object on a line.

Sessions. A file is one session: the `sessionId` of its rows. Where the file of a resumed session begins with rows
copied from the session before, the file's name says which of the ids is its own, and the copied one is
`resumed_from`; so is the session that rows name under `forkedFrom`. A subagent's file (`agent-ID.jsonl`, its rows
carry an `agentId`) is the session `SESSION.agent-ID`, a child of SESSION. Sidechain rows inside a main file, as
older versions wrote them, are the child `SESSION.sidechain` (`SESSION.sidechain-ID` where a row names its agent).

A row's events depend on that row alone; `lines.py` says how they get their keys.

A transcript does not say how its work ended, so no terminal result is made up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ledger.transcripts.claude_rows import said_by, typed_text
from ledger.transcripts.lines import HEAD_LINES, LineTranscript
from ledger.transcripts.model import (
    SUFFIX_CHARS_MAX,
    Mark,
    NoSession,
    Report,
    Row,
    Said,
    TranscriptSession,
    checked_id,
    title_of,
)
from ledger.transcripts.reading import LineReader

AGENT = "claude-code"

_PROGRESS = b'"type":"progress"'


class _Typed(msgspec.Struct):
    type: str


_TYPE = msgspec.json.Decoder(_Typed)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def open_transcript(
    path: Path, report: Report, start: Mark | None = None, *, growing: bool = False
) -> LineTranscript:
    """The transcript at `path`, to be read from `start`. Raises NoSession where no row names a session, and
    OSError where the file cannot be read. Bad lines and skipped rows go to `report`."""
    session = _session_of(path)
    rows = ClaudeRows(session, report)
    return LineTranscript(path, session, rows, report, start, growing=growing, leaves_out=rows.leaves_out)


class ClaudeRows:
    """The rows of one file; those of sidechains in a main file go to child sessions."""

    def __init__(self, session: TranscriptSession, report: Report) -> None:
        self._session = session
        self._is_main = session.parent_session_id is None
        self._skip = report.skip
        self._children: dict[str, TranscriptSession] = {}

    def leaves_out(self, raw: bytes) -> bool:
        """True of a progress row, which is none of ours, without building what it holds: most rows are of that type.
        A line that is not whole is for others to judge."""
        if _PROGRESS not in raw:
            return False
        try:
            type_ = _TYPE.decode(raw).type
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return False
        if type_ != "progress":
            return False  # it stands deeper in the row
        self._skip(type_)
        return True

    def session_of(self, row: Row) -> TranscriptSession:
        return self._sidechain(row) if self._is_main and row.get("isSidechain") else self._session

    def said_by(self, row: Row) -> Iterator[Said]:
        return said_by(row, self._skip)

    def at(self, row: Row) -> Any:
        return row.get("timestamp")

    def _sidechain(self, row: Row) -> TranscriptSession:
        agent_id = row.get("agentId")
        suffix = f"sidechain-{agent_id}" if agent_id else "sidechain"
        child = self._children.get(suffix)
        if child is None:
            child = self._children[suffix] = child_of(self._session.session_id, suffix, self._session.cwd)
        return child


def _session_of(path: Path) -> TranscriptSession:
    """The session that a file is about, from its first rows."""
    head = _Head(path.stem)
    for line in LineReader(path, Report()):
        for row in line.rows:
            head.see(row)
        if head.is_complete or (line.number >= HEAD_LINES and head.knows_session):
            break
    return head.session(path)


class _Head:
    """What the first rows of a file say about its session, gathered row by row."""

    def __init__(self, stem: str) -> None:
        self._stem = stem if _UUID.fullmatch(stem) else None
        self._ids: list[str] = []
        self._forked_from: str | None = None
        self._agent_id: str | None = None
        self._is_sidechain = False
        self._cwd: str | None = None
        self._model: str | None = None
        self._prompt: str | None = None

    def see(self, row: dict[str, Any]) -> None:
        session_id = row.get("sessionId")
        if not isinstance(session_id, str) or not session_id:
            return
        if not self._ids:
            self._is_sidechain = bool(row.get("isSidechain"))
        if session_id not in self._ids:
            self._ids.append(session_id)
        forked = row.get("forkedFrom")
        if self._forked_from is None and isinstance(forked, dict):
            self._forked_from = forked.get("sessionId")
        if self._is_sidechain and self._agent_id is None:
            self._agent_id = row.get("agentId")
        if self._cwd is None and isinstance(row.get("cwd"), str):
            self._cwd = row["cwd"]
        if self._prompt is None and bool(row.get("isSidechain")) == self._is_sidechain:
            self._prompt = typed_text(row)
        if self._model is None and row.get("type") == "assistant":
            message = row.get("message")
            model = message.get("model") if isinstance(message, dict) else None
            self._model = model if isinstance(model, str) and model != "<synthetic>" else None

    @property
    def knows_session(self) -> bool:
        """The name of a file that is a session's id is waited for: rows before it are copies."""
        return bool(self._ids) and (self._stem is None or self._stem in self._ids)

    @property
    def is_complete(self) -> bool:
        return self.knows_session and None not in (self._prompt, self._cwd, self._model)

    def session(self, path: Path) -> TranscriptSession:
        if not self._ids:
            raise NoSession(f"{path}: no row names a session")
        own = self._stem if self._stem in self._ids else self._ids[0]
        checked_id(own, path)
        if self._is_sidechain:
            return child_of(own, f"agent-{self._agent_id or path.stem}", self._cwd, self._prompt, self._model)
        before = self._ids[: self._ids.index(own)]
        resumed_from = before[-1] if before else self._forked_from
        return TranscriptSession(
            session_id=own,
            thread_id=before[0] if before else resumed_from or own,
            title=title_of(self._prompt or "") or f"Claude Code session {own[:8]}",
            agent=AGENT,
            cwd=self._cwd,
            model=self._model,
            resumed_from=resumed_from,
        )


def child_of(
    parent_id: str,
    suffix: str,
    cwd: str | None,
    prompt: str | None = None,
    model: str | None = None,
    *,
    thread_id: str | None = None,
) -> TranscriptSession:
    """The child session of `parent_id` that is called `suffix` there."""
    name = "".join(c for c in suffix if c.isprintable() and c != "/")[: SUFFIX_CHARS_MAX - 1]
    return TranscriptSession(
        session_id=f"{parent_id}.{name}",
        thread_id=thread_id or parent_id,
        title=title_of(prompt or "") or f"Claude Code session {parent_id[:8]}",
        agent=AGENT,
        cwd=cwd,
        model=model,
        parent_session_id=parent_id,
    )
