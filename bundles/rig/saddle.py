"""A scripted saddle: asks for work, opens sessions, says what it is told to, and ends as it is told to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bundles.rig.wire import Answer, Wire


@dataclass(frozen=True)
class Work:
    """What an ask was given."""

    task_id: str
    session_id: str


class Saddle:
    """One registered daemon. Seqs of what it says and parks count up per session, from 0."""

    def __init__(self, name: str, wire: Wire) -> None:
        self.name = name
        self.wire = wire
        self._next_seq: Counter[str] = Counter()

    def ask(self, wait_s: float = 0) -> Work | None:
        """Claims one queued task; None where none is queued."""
        answer = self.wire.post("/api/saddle/ask", {"wait_s": wait_s})
        if answer.status == 204:
            return None
        body = answer.json
        return Work(body["task"]["id"], body["session_id"])

    def must_ask(self) -> Work:
        """As `ask`, where the scenario has queued a task."""
        work = self.ask()
        if work is None:
            raise AssertionError(f"{self.name} asked for work and was given none, though a task is queued")
        return work

    def open(self, session_id: str, task_id: str, **fields: Any) -> Answer:
        return self.wire.post("/api/saddle/sessions", {"session_id": session_id, "task_id": task_id, **fields})

    def push(self, session_id: str, events: Sequence[dict[str, Any]], **fields: Any) -> Answer:
        return self.wire.post("/api/saddle/chunks", {"session_id": session_id, "events": list(events), **fields})

    def say(self, session_id: str, kind: str, payload: dict[str, Any], actor: str = "model") -> Answer:
        """Pushes one event at the session's next seq."""
        event = {"seq": self._take_seq(session_id), "kind": kind, "actor": actor, "payload": payload}
        return self.push(session_id, [event])

    def finish(self, session_id: str, summary: str) -> Answer:
        return self.end(session_id, "done", summary)

    def fail(self, session_id: str, summary: str) -> Answer:
        return self.end(session_id, "failed", summary)

    def park(self, session_id: str, summary: str) -> Answer:
        """Pushes `suspended` at the session's next seq."""
        return self.state(session_id, "suspended", summary)

    def state(self, session_id: str, state: str, summary: str | None = None) -> Answer:
        """Pushes a state at the session's next seq."""
        return self._result(session_id, state, summary, seq=self._take_seq(session_id))

    def end(self, session_id: str, state: str, summary: str) -> Answer:
        """Pushes a terminal state without a seq, so that the same push again lands in the same slot."""
        return self._result(session_id, state, summary)

    def _result(self, session_id: str, state: str, summary: str | None, **seq: int) -> Answer:
        body = {"session_id": session_id, "state": state, "summary": summary, **seq}
        return self.wire.post("/api/saddle/results", body)

    def _take_seq(self, session_id: str) -> int:
        seq = self._next_seq[session_id]
        self._next_seq[session_id] = seq + 1
        return seq
