"""Codex CLI rollouts: `~/.codex/sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl`, one JSON object on a line.

Sessions. A file is one session: the `id` of its first `session_meta`. Resuming goes on in the same file; archiving
moves it to `archived_sessions`, which changes nothing here. A fork begins with its own `session_meta`
(`forked_from_id`) and then copies the history of the session before, with that one's `session_meta` where the
version wrote it: that session is `resumed_from`. A subagent's `source` names the `parent_thread_id`.

In the first versions the first line was a bare `{id, timestamp, …}` and the others bare items; those are read too.

A rollout does not say how its work ended, so no terminal result is made up.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.transcripts.codex_rows import said_by, typed_text
from ledger.transcripts.lines import HEAD_LINES, LineTranscript
from ledger.transcripts.model import (
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

AGENT = "codex"


def open_transcript(
    path: Path, report: Report, start: Mark | None = None, *, growing: bool = False
) -> LineTranscript:
    """The rollout at `path`, to be read from `start`. Raises NoSession where no row names a session, and OSError
    where the file cannot be read. Bad lines and skipped rows go to `report`."""
    session = _session_of(path)
    return LineTranscript(path, session, CodexRows(session, report), report, start, growing=growing)


class CodexRows:
    def __init__(self, session: TranscriptSession, report: Report) -> None:
        self._session = session
        self._skip = report.skip

    def session_of(self, row: Row) -> TranscriptSession:
        return self._session

    def said_by(self, row: Row) -> Iterator[Said]:
        return said_by(row, self._session.thread_id, self._skip)

    def at(self, row: Row) -> Any:
        return row.get("timestamp")


def _session_of(path: Path) -> TranscriptSession:
    head = _Head()
    for line in LineReader(path, Report()):
        for row in line.rows:
            head.see(row)
        if head.is_complete or line.number >= HEAD_LINES:
            break
    return head.session(path)


class _Head:
    """What the first rows of a rollout say about its session, gathered row by row."""

    def __init__(self) -> None:
        self._metas: list[Row] = []
        self._model: str | None = None
        self._prompt: str | None = None

    def see(self, row: Row) -> None:
        payload = row.get("payload")
        if row.get("type") == "session_meta" and isinstance(payload, dict):
            self._metas.append(payload)
        elif "type" not in row and isinstance(row.get("id"), str) and not self._metas:
            self._metas.append(row)
        elif row.get("type") == "turn_context" and isinstance(payload, dict):
            self._model = self._model or payload.get("model")
        elif self._prompt is None:
            self._prompt = typed_text(row)

    @property
    def is_complete(self) -> bool:
        return bool(self._metas) and None not in (self._prompt, self._model)

    def session(self, path: Path) -> TranscriptSession:
        ids = list(dict.fromkeys(i for meta in self._metas if isinstance(i := meta.get("id"), str) and i))
        if not ids:
            raise NoSession(f"{path}: no row names a session")
        own, *copied = [checked_id(one, path) for one in ids]
        meta = self._metas[0]
        parent = _parent_id(meta)
        forked_from = meta.get("forked_from_id") or next(iter(copied), None)
        return TranscriptSession(
            session_id=own,
            thread_id=copied[-1] if copied else parent or forked_from or own,
            title=title_of(self._prompt or "") or f"Codex session {own[:8]}",
            agent=AGENT,
            cwd=meta.get("cwd"),
            model=self._model,
            parent_session_id=parent,
            resumed_from=None if forked_from == parent else forked_from,
            started_at=meta.get("timestamp"),
        )


def _parent_id(meta: Row) -> str | None:
    """The session that spawned this one: `{source: {subagent: {thread_spawn: {parent_thread_id}}}}`."""
    found: Any = meta
    for name in ("source", "subagent", "thread_spawn", "parent_thread_id"):
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, str) and found else None
