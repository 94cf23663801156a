"""What `codex exec --json` prints: a thread, its turns, and the items of each. No row has a time.

An item is told when it starts and when it is completed: of a command or a tool of an MCP server the start is the
call and the end its result; of all others the end says everything. `turn.completed` carries the thread's running
total of tokens, so its last report counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.events import kinds
from ledger.transcripts.codex import AGENT
from ledger.transcripts.codex_rows import content_text, usage
from ledger.transcripts.lines import LineTranscript
from ledger.transcripts.model import HARNESS, MODEL, Mark, Report, Row, Said, TranscriptSession, given
from ledger.transcripts.streams import ended, open_stream, session_of_run, working

_CALLS = frozenset({"command_execution", "mcp_tool_call"})


def open_transcript(
    path: Path, report: Report, start: Mark | None = None, *, growing: bool = False
) -> LineTranscript:
    """The stream at `path`, from its beginning. Raises NoSession where no row names a thread."""
    return open_stream(path, CodexStream(path, report), report, growing=growing)


class CodexStream:
    def __init__(self, path: Path, report: Report) -> None:
        self._path = path
        self._skip = report.skip
        self._thread_id = ""
        self._session: TranscriptSession | None = None
        self._last_message: str | None = None

    def see(self, row: Row) -> None:
        """Nothing that a beginning tells is needed later: each thread is named before its rows."""

    def session_of(self, row: Row) -> TranscriptSession | None:
        thread_id = row.get("thread_id")
        if row.get("type") == "thread.started" and isinstance(thread_id, str):
            self._thread_id = thread_id
            self._session = session_of_run(self._path, AGENT, thread_id)
        return self._session

    def at(self, row: Row) -> Any:
        return row.get("timestamp")

    def said_by(self, row: Row) -> Iterator[Said]:
        type_, item = str(row.get("type")), row.get("item")
        if type_ == "turn.started":
            yield working()
        elif type_ == "turn.completed":
            if isinstance(row.get("usage"), dict):
                yield kinds.USAGE, MODEL, usage(f"codex-{self._thread_id}-total", row["usage"])
            yield ended(kinds.DONE, self._last_message)
        elif type_ == "turn.failed":
            yield ended(kinds.FAILED, _message_of(row.get("error")))
        elif type_ == "error":
            yield kinds.ERROR, HARNESS, {"message": _message_of(row)}
        elif type_ == "item.started" and isinstance(item, dict) and item.get("type") in _CALLS:
            yield _call(item)
        elif type_ == "item.completed" and isinstance(item, dict):
            yield from self._completed(item)
        elif type_.startswith(("item.", "thread.")):
            self._skip(type_)
        else:
            yield f"codex.{type_[:100]}", HARNESS, {name: value for name, value in row.items() if name != "type"}

    def _completed(self, item: Row) -> Iterator[Said]:
        type_ = item.get("type")
        if type_ in _CALLS:
            yield kinds.TOOL_RESULT, HARNESS, _result(item)
        elif type_ == "agent_message":
            self._last_message = str(item.get("text", ""))
            yield kinds.MESSAGE, MODEL, {"role": "assistant", "text": self._last_message}
        elif type_ == "reasoning":
            yield kinds.MESSAGE, MODEL, {"role": "thinking", "text": str(item.get("text", ""))}
        elif type_ == "error":
            yield kinds.ERROR, HARNESS, {"message": _message_of(item)}
        else:
            yield _call(item)
            if item.get("status") in ("completed", "failed"):
                yield kinds.TOOL_RESULT, HARNESS, _result(item)


def _call(item: Row) -> Said:
    type_ = item.get("type")
    args: Any
    if type_ == "command_execution":
        tool, args = "shell", {"command": item.get("command")}
    elif type_ == "mcp_tool_call":
        tool, args = f"{item.get('server')}.{item.get('tool')}", item.get("arguments")
    else:
        about = ("id", "type", "status", "result", "error")
        tool, args = str(type_), {name: value for name, value in item.items() if name not in about}
    return kinds.TOOL_CALL, MODEL, given({"tool": tool, "args": args, "call_id": item.get("id")})


def _result(item: Row) -> dict[str, Any]:
    error, result = item.get("error"), item.get("result")
    output = item.get("aggregated_output")
    if not isinstance(output, str):
        content = result.get("content") if isinstance(result, dict) else result
        output = _message_of(error) if error else content_text(content)
    payload: dict[str, Any] = {
        "call_id": item.get("id"),
        "output": output,
        "exit_code": item.get("exit_code"),
    }
    if item.get("status") == "failed" or error:
        payload["is_error"] = True
    return given(payload)


def _message_of(error: Any) -> str:
    message = error.get("message") if isinstance(error, dict) else error
    return str(message) if message else "the run failed"
