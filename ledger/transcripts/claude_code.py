"""Claude Code transcripts: `~/.claude/projects/FOLDER/SESSION.jsonl`, one JSON object on a line.

Sessions. A file is one session: the `sessionId` of its rows. Where the file of a resumed session begins with rows
copied from the session before, the file's name says which of the ids is its own, and the copied one is
`resumed_from`; so is the session that rows name under `forkedFrom`. A subagent's file (`agent-ID.jsonl`, its rows
carry an `agentId`) is the session `SESSION.agent-ID`, a child of SESSION. Sidechain rows inside a main file, as
older versions wrote them, are the child `SESSION.sidechain` (`SESSION.sidechain-ID` where a row names its agent).

Keys. seq = line × 1000 + n for the n-th event of a line (from 0), lines counted from 1. A row's events depend on
that row alone, so a longer copy of a file has the same keys for the same lines, wherever it lies.

A transcript does not say how its work ended, so no terminal result is made up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.events.model import ID_CHARS_MAX
from ledger.transcripts.batches import Gathered, gathered
from ledger.transcripts.bounding import PAYLOAD_BYTES_MAX, bounded
from ledger.transcripts.claude_rows import said_by, typed_text
from ledger.transcripts.model import Batch, Event, NoSession, Report, TranscriptSession, title_of
from ledger.transcripts.reading import LineReader, Mark

AGENT = "claude-code"
EVENTS_OF_LINE_MAX = 1000
HEAD_LINES = 1000  # how far a title, a folder and a model are looked for

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_SUFFIX_CHARS_MAX = 60


def discover(root: Path) -> list[Path]:
    """The transcripts at `root`: the file itself, or all `*.jsonl` below a folder; sessions before subagents."""
    if root.is_file():
        return [root]
    return sorted(root.rglob("*.jsonl"), key=lambda path: (path.name.startswith("agent-"), path))


def open_transcript(path: Path, report: Report, start: Mark | None = None) -> ClaudeTranscript:
    """The transcript at `path`, to be read from `start`. Raises NoSession where no row names a session, and
    OSError where the file cannot be read. Bad lines and skipped rows go to `report`."""
    return ClaudeTranscript(path, _session_of(path), report, start)


class ClaudeTranscript:
    """One file. `mark` is where to start when it has grown, once `batches` is exhausted."""

    def __init__(self, path: Path, session: TranscriptSession, report: Report, start: Mark | None) -> None:
        self.session = session
        self._path = path
        self._report = report
        self._lines = LineReader(path, report, start)
        self._children: dict[str, TranscriptSession] = {}

    @property
    def mark(self) -> Mark:
        return self._lines.mark

    def batches(self) -> Iterator[Batch]:
        return gathered(self._parts())

    def _parts(self) -> Iterator[Gathered]:
        is_main = self.session.parent_session_id is None
        for line in self._lines:
            first_seq = line.number * EVENTS_OF_LINE_MAX
            for row in line.rows:
                session = self._sidechain(row) if is_main and row.get("isSidechain") else self.session
                events = self._events(row, first_seq, line.number)
                first_seq += len(events)
                if line.size < PAYLOAD_BYTES_MAX // 2:  # then no payload can come near the limit
                    yield session, events, line.size, line.end
                else:
                    for event in events:
                        event["payload"], size = bounded(event["payload"])
                        yield session, [event], size, line.end

    def _events(self, row: dict[str, Any], first_seq: int, number: int) -> list[Event]:
        at = row.get("timestamp")
        events: list[Event] = []
        room = EVENTS_OF_LINE_MAX - first_seq % EVENTS_OF_LINE_MAX
        for kind, actor, payload in said_by(row, self._skip):
            event = {"seq": first_seq + len(events), "kind": kind, "actor": actor, "payload": payload}
            if at is not None:
                event["at"] = at
            events.append(event)
        if len(events) >= room:
            why = f"more than {EVENTS_OF_LINE_MAX - 1} events on one line; the rest left out"
            self._report.bad_line(self._path, number, why)
            del events[room - 1 :]
        return events

    def _skip(self, type_: str) -> None:
        self._report.skipped[type_] += 1

    def _sidechain(self, row: dict[str, Any]) -> TranscriptSession:
        agent_id = row.get("agentId")
        suffix = f"sidechain-{agent_id}" if agent_id else "sidechain"
        child = self._children.get(suffix)
        if child is None:
            child = self._children[suffix] = _child_of(self.session.session_id, suffix, self.session.cwd)
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
        if not own.isprintable() or own.startswith("@") or len(own) > ID_CHARS_MAX - _SUFFIX_CHARS_MAX:
            raise NoSession(f"{path}: {own[:80]!r} cannot be a session's id")
        if self._is_sidechain:
            return _child_of(own, f"agent-{self._agent_id or path.stem}", self._cwd, self._prompt, self._model)
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


def _child_of(
    parent_id: str, suffix: str, cwd: str | None, prompt: str | None = None, model: str | None = None
) -> TranscriptSession:
    name = "".join(c for c in suffix if c.isprintable() and c != "/")[: _SUFFIX_CHARS_MAX - 1]
    return TranscriptSession(
        session_id=f"{parent_id}.{name}",
        thread_id=parent_id,
        title=title_of(prompt or "") or f"Claude Code session {parent_id[:8]}",
        agent=AGENT,
        cwd=cwd,
        model=model,
        parent_session_id=parent_id,
    )
