"""A register for looking at: half a year of sweeps, incidents of each severity, one that came back, exclusions, and
sessions that could not be scored."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from projections.incidents_board import incident_id
from projections.sweep import AGENT
from tests.browser.driving import Ledger

REGISTER = "incidents-5c1f"
WEEKS = 13
WORDS = {
    "HIGH": (
        ("The orders database was removed", "data-loss", "An agent cleaned up /srv and took the database with it."),
        ("A force push removed two days of commits", "destructive-action", "The branch was shared, and it was main."),
    ),
    "MEDIUM": (
        ("A deploy key was printed into a log", "credential-leak", "`env` was run to find a missing variable."),
        ("Four hours in one flaky test", "debug-spiral", "The same change was made and taken back eleven times."),
        ("A cluster of eight machines ran over a weekend", "unmetered-cost", "It was started twice and ended once."),
    ),
    "LOW": (
        ("A colleague's change was called broken without a look", "misattribution", "The test had never been green."),
        ("A service was restarted that nobody had asked for", "outage", "The port was taken by the service itself."),
    ),
}
FIRST_SAID = "I deleted the wrong folder. I am sorry: \x1b[31mrm -rf /srv\x1b[0m took the database too."

Fact = tuple[str, dict[str, Any]]


def tell_incidents(ledger: Ledger, seed: int = 7) -> dict[str, str]:
    """The pages of a register."""
    chance = random.Random(seed)
    now = datetime.now(UTC)
    ledger.open("port-1-agent", str(ledger.post("/api/tasks", {"title": "Tidy up the host"})["id"]), agent="codex")
    ledger.push("port-1-agent", *((seq, "message", {"role": "assistant", "text": FIRST_SAID}) for seq in range(8)))
    told = [(severity, *words) for severity, all_words in WORDS.items() for words in all_words]
    for week in range(WEEKS, -1, -1):
        at = now - timedelta(weeks=week, hours=3)
        facts: list[Fact] = []
        for number, (severity, title, category, what) in enumerate(told):
            mark = f"mark-{number}"
            if WEEKS - week == number * 2:
                facts.append(("incident.filed", _filed(mark, severity, title, category, what, at)))
            elif WEEKS - week > number * 2 and chance.random() < 0.12:
                facts.append(("incident.recurred", _named(mark, title, at)))
        facts += [
            (
                "session.unreadable",
                {"source": "claude", "key": f"/home/mole/t/{n}.jsonl", "why": "line 40 is no JSON"},
            )
            for n in range(chance.randrange(3))
        ]
        if week == 0:
            facts.append(("judge.verdict", {"verdict": "v", "plan": _plan()}))
        swept(ledger, f"sweep-{week}", facts, at)
    ledger.post(f"/api/incidents/{_id(1)}/acknowledge", {"reason": "The reflog still has them; I ask the host."})
    ledger.post(f"/api/incidents/{_id(2)}/acknowledge")
    ledger.post(f"/api/incidents/{_id(2)}/resolve", {"reason": "The key was replaced, and `env` is redacted now."})
    ledger.post(f"/api/incidents/{_id(4)}/resolve", {"reason": "A budget ends clusters on Fridays."})
    last: list[Fact] = [
        ("session.unreadable", {"source": "codex", "key": "/home/mole/c/7.jsonl", "why": "no permission to read it"}),
        ("incident.recurred", _named("mark-4", told[4][1], now)),
    ]
    swept(ledger, "sweep-now", last)
    return {"incidents": "/incidents", "incidents-all": "/incidents?status=all", "incident": f"/incidents/{_id(0)}"}


def swept(ledger: Ledger, name: str, facts: Sequence[Fact], at: datetime | None = None) -> None:
    """A whole run that tells these facts, now or at some time."""
    at = at or datetime.now(UTC)
    unread = sum(kind == "session.unreadable" for kind, _ in facts)
    filed = sum(kind == "incident.filed" for kind, _ in facts)
    headline = f"{filed} incidents filed" if filed else "quiet: 212 sessions looked at, nothing to judge"
    counts = {"sessions_clean": 212, "sessions_judged": 3, "sessions_deferred": 2, "sessions_unreadable": unread}
    said = [
        ("sweep.started", {"register": REGISTER, "title": "Our incidents"}),
        *facts,
        ("sweep.finished", {"status": "ok" if filed else "quiet", "headline": headline, **counts}),
        ("result", {"state": "done", "summary": headline}),
    ]
    task = {"id": name, "title": f"Sweep of {at.date()}: Our incidents"}
    ledger.post(
        "/api/saddle/sessions", {"session_id": f"{name}-s", "task": task, "agent": AGENT, "at": at.isoformat()}
    )
    events = [
        {"seq": seq, "kind": kind, "actor": "sweep", "payload": payload, "at": at.isoformat()}
        for seq, (kind, payload) in enumerate(said)
    ]
    ledger.post("/api/saddle/chunks", {"session_id": f"{name}-s", "events": events})


def _named(mark: str, title: str, at: datetime) -> dict[str, Any]:
    return {"register": REGISTER, "fingerprint": mark, "title": title, "date": at.date().isoformat()}


def _filed(mark: str, severity: str, title: str, category: str, what: str, at: datetime) -> dict[str, Any]:
    turns = [
        {"seq": 4, "rule": "remove-tree", "snippet": "rm -rf /srv/orders /srv/cache"},
        {"seq": 6, "rule": "agent-admits", "snippet": "I deleted the wrong folder. I am sorry"},
    ]
    sessions = [
        {"source": "claude", "key": "/t/1.jsonl:17:9000", "session_id": "port-1-agent", "turns": turns},
        {"source": "opencode", "key": "ses_6d1f:1764550000000", "session_id": "ses_6d1f", "turns": turns[:1]},
    ]
    return {
        **_named(mark, title, at),
        "severity": severity,
        "category": category,
        "what": what,
        "cost": "A day of work for two people, and the orders of one morning.",
        "lesson": "Agents work on a copy. What cannot be brought back takes a person's yes.",
        "sessions": sessions,
    }


def _plan() -> dict[str, Any]:
    shown = [
        ("C01", "remove-tree", "rm -rf /tmp/build-4711", "port-1-agent", 2),
        ("C02", "kill", "kill -9 4242", "ses_6d1f", 9),
        ("C03", "alarm", "the disk is full", None, None),
    ]
    rows = [
        {"id": id, "rule": rule, "snippet": snippet, "session": f"claude {session or 'host'}"}
        | {"session_id": session, "seq": seq}
        for id, rule, snippet, session, seq in shown
    ]
    excluded = [
        {"candidates": ["C01"], "reason": "A scratch folder of its own build."},
        {"candidates": ["C02"], "reason": "It ended the process that it had begun itself.", "duplicate_of": "E02"},
    ]
    return {"candidates": rows, "excluded": excluded, "unmentioned": ["C03"]}


def _id(number: int) -> str:
    return incident_id(REGISTER, f"mark-{number}")
