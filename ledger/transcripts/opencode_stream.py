"""What `opencode run --format json` prints: a row for each part once it has settled, and for an error.

The stream does not say that the run is over. A step that finishes for another reason than to call tools ends it
well, an error ends it badly, unless another step follows. Earlier versions give no
reason; then nothing is said about the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ledger.events import kinds
from ledger.transcripts.lines import LineTranscript
from ledger.transcripts.model import HARNESS, Mark, Report, Row, Said, TranscriptSession
from ledger.transcripts.opencode_parts import AGENT, error_text, said_by
from ledger.transcripts.streams import ended, open_stream, session_of_run, working

_GOES_ON = frozenset({"tool-calls", "unknown"})


def open_transcript(
    path: Path, report: Report, start: Mark | None = None, *, growing: bool = False
) -> LineTranscript:
    """The stream at `path`, from its beginning. Raises NoSession where no row names a session."""
    return open_stream(path, OpencodeStream(path), report, growing=growing)


class OpencodeStream:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._sessions: dict[str, TranscriptSession] = {}
        self._last_text: dict[str, str] = {}

    def see(self, row: Row) -> None:
        """Nothing that a beginning tells is needed later: each row names its session."""

    def session_of(self, row: Row) -> TranscriptSession | None:
        session_id = row.get("sessionID")
        if not isinstance(session_id, str) or not session_id:
            return None
        if session_id not in self._sessions:
            self._sessions[session_id] = session_of_run(self._path, AGENT, session_id)
        return self._sessions[session_id]

    def at(self, row: Row) -> Any:
        return row.get("timestamp")

    def said_by(self, row: Row) -> Iterator[Said]:
        type_, part, session_id = row.get("type"), row.get("part"), str(row.get("sessionID"))
        if type_ == "error":
            message = error_text(row.get("error"))
            yield kinds.ERROR, HARNESS, {"message": message}
            yield ended(kinds.FAILED, message)
        elif not isinstance(part, dict):
            yield f"opencode.{str(type_)[:100]}", HARNESS, {k: v for k, v in row.items() if k not in _ENVELOPE}
        elif part.get("type") == "step-start":
            yield working()
        else:
            yield from (one for one in said_by(part, "assistant") if one is not None)
            if part.get("type") == "text" and isinstance(part.get("text"), str):
                self._last_text[session_id] = part["text"]
            if part.get("type") == "step-finish" and (reason := part.get("reason")) and reason not in _GOES_ON:
                yield _ending(str(reason), self._last_text.get(session_id))


_ENVELOPE = ("type", "timestamp", "sessionID")


def _ending(reason: str, last_text: str | None) -> Said:
    if reason in ("error", "content-filter", "length"):
        return ended(kinds.FAILED, f"The last step finished with {reason}")
    return ended(kinds.DONE, last_text)
