"""A month of a fleet's work, for looking at the trends."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

from tests.browser.driving import Ledger

MODELS = ("claude-sonnet-4-5", "gpt-5-codex", "gemini-2.5-pro", "house-model-1")
PROJECTS = ("Parser", "Orders", "Night jobs")
DAYS = 30


def tell_history(ledger: Ledger, seed: int = 4) -> None:
    """Sessions over the last DAYS days, most of them on weekdays at work; some fail, some cost, some come twice."""
    chance = random.Random(seed)
    projects = [str(ledger.post("/api/projects", {"title": title})["id"]) for title in PROJECTS]
    now = datetime.now(UTC)
    for before in range(DAYS, 0, -1):
        day = (now - timedelta(days=before)).replace(hour=0, minute=0, second=0, microsecond=0)
        for number in range(chance.randrange(1, 4) if day.weekday() >= 5 else chance.randrange(4, 11)):
            began = day + timedelta(hours=chance.triangular(6, 22, 14))
            _session(ledger, f"day-{before}-{number}", chance.choice(projects), began, chance)


def _session(ledger: Ledger, session: str, project: str, began: datetime, chance: random.Random) -> None:
    model = chance.choices(MODELS, (6, 4, 2, 1))[0]
    ended = began + timedelta(minutes=chance.lognormvariate(3.2, 0.9))
    opening = {"session_id": session, "agent": "codex", "host": "mole", "model": model, "at": began.isoformat()}
    ledger.post("/api/saddle/sessions", {**opening, "task": {"title": f"Part {session}", "project_id": project}})
    span = ended - began
    events = [
        {
            "seq": seq,
            "kind": "usage",
            "payload": {"message_id": f"{session}-{seq}", "input_tokens": 40_000, "output_tokens": 3_000},
            "at": (began + span * seq / 6).isoformat(),
        }
        for seq in range(chance.randrange(1, 6))
    ]
    for _ in range(chance.choice((1, 1, 2))):
        ledger.post("/api/saddle/chunks", {"session_id": session, "events": events})
    state = "failed" if chance.random() < 0.15 else "done"
    ledger.post("/api/saddle/results", {"session_id": session, "state": state, "at": ended.isoformat()})
