"""Output that is an agent's stream of JSON objects: its rows become events, and it is heard what the agent replied,
which conversation that was and what it cost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import orjson

from ledger.daemons.agent.outputs import Batch, Lines, event
from ledger.events import kinds
from ledger.events.model import NewEvent
from ledger.events.times import parse_instant
from ledger.transcripts.bounding import bounded
from ledger.transcripts.model import HARNESS, MODEL, NoSession, Row, Said, TranscriptSession
from ledger.transcripts.streams import StreamReader

TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
ROW_BYTES_MAX = 8 * 2**20

_MESSAGES_MAX = 100_000  # whose usage is added up
_CLAUDE_RUN = "claude-run-"


class StreamReading:
    """Each row is what `rows` makes of it; a line that is none is an `output` event, and part of the reply where the
    stream has no other. Results are left out: how the session ends is not the agent's to say. Of more than
    `bytes_max` nothing is told any more, but the reply is still heard: it comes last."""

    def __init__(self, rows: StreamReader, actor: str, turn: str, bytes_max: int) -> None:
        self.last_words = ""
        self.truncated = False
        self.undecodable = False
        self.heard = Heard()
        self._rows = rows
        self._actor = actor
        self._turn = turn
        self._room = bytes_max
        self._lines = Lines(ROW_BYTES_MAX, parts=False)
        self._plain: list[str] = []
        self._plain_room = bytes_max

    def take(self, data: bytes) -> Batch | None:
        self._room -= len(data)
        return self._batch(self._lines.cut(data))

    def end(self) -> Batch | None:
        return self._batch(self._lines.rest())

    def text(self) -> str:
        """The agent's last message; where there was none, what it printed beside its stream."""
        return "\n".join(self._plain) if self.heard.text is None else self.heard.text

    def _batch(self, lines: list[bytes]) -> Batch | None:
        events = [one for line in lines if line.strip() for one in self._events(line)]
        self.truncated = self.truncated or self._room < 0 or self._lines.left_out > 0
        if not events or self._room < 0:
            return None
        return Batch(len(events), lambda start, stop: events[start:stop])

    def _events(self, line: bytes) -> list[NewEvent]:
        text = self._decoded(line)
        try:
            row = orjson.loads(text)
            if isinstance(row, dict):
                return list(self._told(row))
        except (NoSession, ValueError, TypeError, AttributeError, KeyError, RecursionError):
            pass  # no row, or one of a shape that nobody has seen: shown as it is
        if len(text) <= self._plain_room:
            self._plain_room -= len(text)
            self._plain.append(text)
        self.last_words = text
        return [event(kinds.OUTPUT, self._actor, bounded({"stream": "stdout", "text": text})[0])]

    def _decoded(self, line: bytes) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError:
            self.undecodable = True
            return line.decode(errors="replace")

    def _told(self, row: Row) -> Iterator[NewEvent]:
        session = self._rows.session_of(row)
        at = parse_instant(self._rows.at(row)) or time.time_ns()
        for said in self._rows.said_by(row):
            kind, actor, payload = self._of_this_turn(said)
            self.heard.hear(session, kind, payload)
            self.last_words = self.heard.last_words or self.last_words
            if kind != kinds.RESULT:
                actor = self._actor if actor in (MODEL, HARNESS) else actor
                yield event(kind, actor, bounded(payload)[0], at)

    def _of_this_turn(self, said: Said) -> Said:
        """What Claude Code says of a run is of this turn alone, though the conversation's id stays the same."""
        kind, actor, payload = said
        message_id = payload.get("message_id")
        if kind == kinds.USAGE and isinstance(message_id, str) and message_id.startswith(_CLAUDE_RUN):
            return kind, actor, {**payload, "message_id": f"{message_id}-{self._turn}"}
        return said


class Heard:
    """What a stream's events come to: `text` is the last message, `error` why the agent says that it failed, `resume`
    the conversation's id, and the rest what it reported to have used."""

    def __init__(self) -> None:
        self.text: str | None = None
        self.error: str | None = None
        self.resume: str | None = None
        self.last_words = ""
        self._used: dict[str, dict[str, Any]] = {}

    def hear(self, session: TranscriptSession | None, kind: str, payload: dict[str, Any]) -> None:
        if session is not None:
            self.resume = session.thread_id
        is_child = session is not None and session.parent_session_id is not None
        if kind == kinds.MESSAGE and payload.get("role") == "assistant" and not is_child:
            self._say(payload.get("text"))
        elif kind == kinds.ERROR:
            self.last_words = _last_line(payload.get("message")) or self.last_words
        elif kind == kinds.USAGE and len(self._used) < _MESSAGES_MAX:
            self._used[str(payload.get("message_id") or len(self._used))] = payload
        elif kind == kinds.RESULT:
            self._end(payload["state"], payload.get("summary"))

    @property
    def usage(self) -> dict[str, int]:
        """Tokens, added up over messages; empty where none were reported."""
        counts = {name: sum(_count(one.get(name)) for one in self._used.values()) for name in TOKENS}
        return counts if self._used else {}

    @property
    def cost_usd(self) -> float | None:
        """What the reports that name a cost come to; None where none does."""
        costs = [one["cost_usd"] for one in self._used.values() if isinstance(one.get("cost_usd"), int | float)]
        return float(sum(costs)) if costs else None

    def _say(self, text: Any) -> None:
        if isinstance(text, str) and text.strip():
            self.text = text
            self.last_words = _last_line(text)

    def _end(self, state: str, summary: Any) -> None:
        self.error = None
        if state == kinds.DONE:
            self._say(summary)
        elif state == kinds.FAILED:
            self.error = summary if isinstance(summary, str) else "the agent says that it failed"
            self.last_words = _last_line(self.error)


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def _last_line(text: Any) -> str:
    lines = text.splitlines() if isinstance(text, str) else []
    return next((line for line in reversed(lines) if line.strip()), "")
