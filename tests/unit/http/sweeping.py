"""Sweeps in a few lines, as their daemon tells the ledger of them."""

from __future__ import annotations

from typing import Any

from projections.incidents_board import incident_id
from projections.sweep import AGENT
from tests.unit.http.in_process import Desk

Fact = tuple[str, dict[str, Any]]


def incident(mark: str = "f1", **fields: Any) -> Fact:
    """An incident of register `r`, behind which stands session `s1`."""
    turns = [{"seq": 3, "rule": "remove-tree", "snippet": "rm -rf /srv/db"}]
    filed = {
        "register": "r",
        "fingerprint": mark,
        "title": "The database was removed",
        "date": "2025-11-30",
        "severity": "HIGH",
        "category": "data-loss",
        "what": "An agent removed the folder of the database.",
        "cost": "A day of orders.",
        "lesson": "Agents work on a copy.",
        "sessions": [{"source": "claude", "key": "/t/s1.jsonl:1:2", "session_id": "s1", "turns": turns}],
    }
    return "incident.filed", {**filed, **fields}


def again(mark: str = "f1", **fields: Any) -> Fact:
    met = {"register": "r", "fingerprint": mark, "title": "Removed once more", "date": "2025-12-01", "sessions": []}
    return "incident.recurred", {**met, **fields}


async def sweep(desk: Desk, name: str, *facts: Fact, register: str = "r", **counts: int) -> None:
    """A whole run that tells these facts; `counts` are those of its end."""
    ended = {"status": "ok", "headline": "1 incident filed", "sessions_clean": 7, "sessions_unreadable": 0, **counts}
    said = [
        ("sweep.started", {"register": register, "title": f"Register {register}"}),
        *facts,
        ("sweep.finished", ended),
        ("result", {"state": "done", "summary": "1 incident filed"}),
    ]
    task = {"id": f"sweep-{name}", "title": f"Sweep {name}"}
    await desk.post("/api/saddle/sessions", session_id=name, task=task, agent=AGENT)
    await desk.push(name, *((seq, kind, payload) for seq, (kind, payload) in enumerate(said)))


def name_of(mark: str = "f1") -> str:
    return incident_id("r", mark)
