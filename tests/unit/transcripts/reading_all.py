"""Files written for a test, and everything that an opened transcript gives."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ledger.transcripts.model import BadLine, Event, Report, TranscriptSession

Row = dict[str, Any]
TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


def write_lines(path: Path, *rows: Row) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_json(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2), encoding="utf-8")
    return path


class Told:
    """What a transcript told: its sessions and events by session id, and what was wrong with it."""

    def __init__(self, open_: Callable[[Report], Any]) -> None:
        self.bad: list[BadLine] = []
        report = Report(self.bad.append)
        self.sessions: dict[str, TranscriptSession] = {}
        self.events: dict[str, list[Event]] = {}
        for batch in open_(report).batches():
            self.sessions[batch.session.session_id] = batch.session
            self.events.setdefault(batch.session.session_id, []).extend(batch.events)
        self.skipped = dict(report.skipped)

    @property
    def all(self) -> list[Event]:
        return sorted((event for events in self.events.values() for event in events), key=lambda event: event["seq"])

    @property
    def said(self) -> list[tuple[str, str, Row]]:
        return [(event["kind"], event["actor"], event["payload"]) for event in self.all]

    @property
    def usage(self) -> dict[str, int]:
        """Counted as the ledger does: the last report of a message id."""
        last = {event["payload"]["message_id"]: event["payload"] for event in self.all if event["kind"] == "usage"}
        return {name: sum(payload.get(name, 0) for payload in last.values()) for name in TOKENS}

    def of_kind(self, kind: str) -> list[Row]:
        return [event["payload"] for event in self.all if event["kind"] == kind]


def told(module: Any, path: Path, **how: Any) -> Told:
    return Told(lambda report: module.open_transcript(path, report, **how))
