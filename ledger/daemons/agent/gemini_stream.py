"""What `gemini --output-format stream-json` prints, by packages/core/src/output/types.ts of google-gemini/gemini-cli.

What the model says comes in pieces; they are one message until it calls a tool or ends. The tokens are the run's, in
`result`; no cost is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.events import kinds
from ledger.transcripts.gemini import AGENT
from ledger.transcripts.model import HARNESS, MODEL, USER, Row, Said, TranscriptSession, given
from ledger.transcripts.streams import ended, session_of_run, working


class GeminiStream:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._session: TranscriptSession | None = None
        self._pieces: list[str] = []
        self._last_message: str | None = None

    def see(self, row: Row) -> None:
        """Nothing that a beginning tells is needed later: the first row names the session."""

    def session_of(self, row: Row) -> TranscriptSession | None:
        session_id = row.get("session_id")
        if row.get("type") == "init" and isinstance(session_id, str) and session_id:
            model = row.get("model")
            self._session = session_of_run(
                self._path, AGENT, session_id, model=model if isinstance(model, str) else None
            )
        return self._session

    def at(self, row: Row) -> Any:
        return row.get("timestamp")

    def said_by(self, row: Row) -> Iterator[Said]:
        type_ = row.get("type")
        if type_ == "message" and row.get("role") == "assistant" and isinstance(row.get("content"), str):
            self._pieces.append(row["content"])
            if not row.get("delta"):
                yield from self._message()
            return
        yield from self._message()
        if type_ == "init":
            yield working()
        elif type_ == "message":
            yield kinds.MESSAGE, USER, {"role": "user", "text": str(row.get("content", ""))}
        elif type_ == "tool_use":
            payload = {"tool": row.get("tool_name"), "args": row.get("parameters"), "call_id": row.get("tool_id")}
            yield kinds.TOOL_CALL, MODEL, given(payload)
        elif type_ == "tool_result":
            yield kinds.TOOL_RESULT, HARNESS, _tool_result(row)
        elif type_ == "error":
            yield kinds.ERROR, HARNESS, {"message": str(row.get("message") or "the run failed")}
        elif type_ == "result":
            yield from self._result(row)
        else:
            about = {name: value for name, value in row.items() if name not in ("type", "timestamp")}
            yield f"gemini.{str(type_)[:100]}", HARNESS, about

    def _message(self) -> Iterator[Said]:
        text, self._pieces = "".join(self._pieces), []
        if text.strip():
            self._last_message = text
            yield kinds.MESSAGE, MODEL, {"role": "assistant", "text": text}

    def _result(self, row: Row) -> Iterator[Said]:
        stats, session = row.get("stats"), self._session
        if isinstance(stats, dict) and session is not None:
            cached = _count(stats.get("cached"))
            yield (
                kinds.USAGE,
                MODEL,
                given(
                    {
                        "message_id": f"gemini-run-{session.thread_id}-{row.get('timestamp')}",
                        "model": session.model,
                        "input_tokens": max(_count(stats.get("input_tokens")) - cached, 0),
                        "output_tokens": _count(stats.get("output_tokens")),
                        "cache_read_tokens": cached,
                    }
                ),
            )
        if row.get("status") == "success":
            yield ended(kinds.DONE, self._last_message)
        else:
            error = row.get("error")
            yield ended(kinds.FAILED, error.get("message") if isinstance(error, dict) else "the run failed")


def _tool_result(row: Row) -> dict[str, Any]:
    error = row.get("error")
    output = error.get("message") if isinstance(error, dict) else row.get("output")
    payload = {"call_id": row.get("tool_id"), "output": output if isinstance(output, str) else ""}
    return {**given(payload), **({"is_error": True} if row.get("status") == "error" else {})}


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
