"""A ledger in memory: keeps events by (session_id, seq), first write wins."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ledger.errors import LedgerError, NotFound


class Kept:
    def __init__(self) -> None:
        self.events: dict[tuple[str, int], Any] = {}
        self.opened: dict[str, dict[str, Any]] = {}
        self.pushes = 0
        self.error: LedgerError | None = None  # raised by each push, while there is one

    def push(
        self, session_id: str, events: Iterable[Mapping[str, Any]], open: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        if self.error is not None:
            raise self.error
        if session_id not in self.opened:
            if open is None:
                raise NotFound("unknown", code="unknown_session")
            self.opened[session_id] = dict(open)
        self.pushes += 1
        receipt: dict[str, Any] = {"stored": 0, "duplicates": 0, "conflicts": [], "rejected": []}
        for event in json.loads(msgspec.json.encode(list(events))):
            held = self.events.setdefault((session_id, event["seq"]), event)
            if held is event:
                receipt["stored"] += 1
            elif held == event:
                receipt["duplicates"] += 1
            else:
                receipt["conflicts"].append({"seq": event["seq"]})
        seqs = [seq for id_, seq in self.events if id_ == session_id]
        return {**receipt, "high_seq": max(seqs, default=None)}

    def create_project(self, title: str, **fields: Any) -> dict[str, Any]:
        return {"id": title}

    def texts(self, session_id: str) -> list[str]:
        """What was said in a session, in the order of seqs."""
        found = sorted((seq, event) for (id_, seq), event in self.events.items() if id_ == session_id)
        return [event["payload"]["text"] for _, event in found if event["kind"] == "message"]
