"""What `claude -p --output-format stream-json` prints. Its rows are those of transcripts in another envelope:
`session_id` for `sessionId`, `parent_tool_use_id` on the rows of subagents, and no times.

`result` ends a turn and says how. Its usage covers the whole run; messages have told their own, though often before
their output was complete, so it adds only what is still missing. Its cost is the run's: so what each message used is
told again, as costing nothing beside that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.events import kinds
from ledger.transcripts.claude_code import AGENT, child_of
from ledger.transcripts.claude_rows import said_by, typed_text
from ledger.transcripts.lines import LineTranscript
from ledger.transcripts.model import MODEL, Mark, Report, Row, Said, TranscriptSession, given
from ledger.transcripts.streams import ended, open_stream, session_of_run, working

_TOKENS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_tokens": "cache_read_input_tokens",
    "cache_write_tokens": "cache_creation_input_tokens",
}
_MESSAGES_TOLD_AGAIN = 900  # a line has room for a thousand events


def open_transcript(
    path: Path, report: Report, start: Mark | None = None, *, growing: bool = False
) -> LineTranscript:
    """The stream at `path`, from its beginning. Raises NoSession where no row names a session."""
    return open_stream(path, ClaudeStream(path, report), report, growing=growing)


class ClaudeStream:
    def __init__(self, path: Path, report: Report) -> None:
        self._path = path
        self._skip = report.skip
        self._heads: dict[str, dict[str, str]] = {}
        self._sessions: dict[str, TranscriptSession] = {}
        self._told: dict[str, dict[str, Row]] = {}  # the usage of each message, by session

    def see(self, row: Row) -> None:
        head = self._heads.setdefault(str(row.get("session_id")), {})
        if row.get("type") == "system" and row.get("subtype") == "init":
            head.update(given({name: row.get(name) for name in ("cwd", "model")}))
        elif not row.get("parent_tool_use_id") and (prompt := typed_text(row)):
            head.setdefault("prompt", prompt)

    def session_of(self, row: Row) -> TranscriptSession | None:
        session_id = row.get("session_id")
        if not isinstance(session_id, str) or not session_id:
            return None
        call_id = row.get("parent_tool_use_id")
        key = f"{session_id} {call_id or ''}"
        if key not in self._sessions:
            run = session_of_run(self._path, AGENT, session_id, **self._heads.get(session_id, {}))
            if call_id:
                run = child_of(run.session_id, f"sidechain-{call_id}", run.cwd, thread_id=session_id)
            self._sessions[key] = run
        return self._sessions[key]

    def said_by(self, row: Row) -> Iterator[Said]:
        type_ = row.get("type")
        if type_ == "result":
            yield from self._result(row)
        elif type_ == "system" and row.get("subtype") == "init":
            yield working()
        elif type_ == "stream_event":
            self._skip("stream_event")
        else:
            self._remember_usage(row)
            yield from said_by({**row, "isSidechain": bool(row.get("parent_tool_use_id"))}, self._skip)

    def at(self, row: Row) -> Any:
        return row.get("timestamp")

    def _remember_usage(self, row: Row) -> None:
        message = row.get("message")
        if row.get("type") == "assistant" and isinstance(message, dict) and isinstance(message.get("usage"), dict):
            told = self._told.setdefault(str(row.get("session_id")), {})
            told[str(message.get("id"))] = message["usage"]

    def _result(self, row: Row) -> Iterator[Said]:
        session_id = str(row.get("session_id"))
        told: Counter[str] = Counter()
        messages = self._told.get(session_id, {})
        for one in messages.values():
            told.update({name: _count(one.get(name)) for name in _TOKENS.values()})
        if row.get("total_cost_usd") is not None:
            for message_id, one in list(messages.items())[:_MESSAGES_TOLD_AGAIN]:
                counts = {ours: _count(one.get(theirs)) for ours, theirs in _TOKENS.items()}
                yield kinds.USAGE, MODEL, {"message_id": message_id, **counts, "cost_usd": 0}
        usage = row.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        missing = {ours: max(_count(usage.get(theirs)) - told[theirs], 0) for ours, theirs in _TOKENS.items()}
        payload = {"message_id": f"claude-run-{session_id}", **missing, "cost_usd": row.get("total_cost_usd")}
        yield kinds.USAGE, MODEL, given(payload)
        if row.get("is_error") or row.get("subtype") != "success":
            errors = row.get("errors")
            texts = [str(error) for error in errors] if isinstance(errors, list) else []
            yield ended(kinds.FAILED, row.get("result") or "\n".join(texts) or row.get("subtype"))
        else:
            yield ended(kinds.DONE, row.get("result"))


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
