"""What the views give, by hand: the smallest goal, task, session and fleet that fill every part of their pages."""

from __future__ import annotations

from typing import Any

NOW = 1_764_555_000_000_000_000  # 2025-12-01T02:10:00Z
AT = "2025-12-01T02:07:30.25Z"
OWNER = {"who": "owner", "role": "owner", "csrf": "csrf-of-the-owner"}
READER = {"who": "wallboard, reader", "role": "reader", "csrf": "csrf-of-the-reader"}
USAGE = {
    "input_tokens": 1200,
    "output_tokens": 48,
    "cache_read_tokens": 7,
    "cache_write_tokens": 3,
    "cost_usd": 3.07,
    "cost_estimated": False,
    "unpriced_models": [],
}
DID = {"messages": 3, "tool_calls": 9, "failed_calls": 2, "first_prompt": "Fuzz it.", "last_words": "It holds."}
CAME = {"session_id": "s-1", "deliveries": 9, "duplicates": 4, "conflicts": 1, "missing": 2}
INTEGRITY = {"deliveries": 9, "duplicates": 4, "conflicts": 1, "missing": 2, "skew": 1.5}
NO_DAEMON: dict[str, None] = {"loop_id": None, "run_id": None}
CURRENT = {"current_command": "cargo test", "current_since": AT}
BLOCK = {"reason": "waits for the key", "at": AT, "actor": "owner"}


def row(kind: str, text: str, **more: Any) -> dict[str, Any]:
    return {
        "kind": kind,
        "text": text,
        "at": AT,
        "actor": "model",
        "task_id": "12",
        "session_id": "s-1",
        "seq": 5,
        "position": 40,
        "copies": 1,
        **more,
    }


def event(seq: int, kind: str, payload: object, **more: Any) -> dict[str, Any]:
    return {
        "position": seq + 10,
        "session_id": "s-1",
        "seq": seq,
        "kind": kind,
        "actor": "model",
        "at": AT,
        "recorded_at": AT,
        "payload": payload,
        **more,
    }


def goal(**more: Any) -> dict[str, Any]:
    return {
        "id": "7",
        "project_id": "3",
        "title": "Port the parser",
        "brief": "Same grammar, twice the speed.",
        "branch_name": "goal/parser",
        "status": "running",
        "attempt": 2,
        "summary": None,
        "created_at": AT,
        "ended_at": None,
        "current_command": "cargo test",
        "current_since": AT,
        "run_task_id": "12",
        "tasks": [
            {
                "id": "12",
                "kind": "goal_run",
                "title": "Port",
                "status": "working",
                "attempt": 2,
                "summary": None,
                "loops": False,
                "usage": USAGE,
            },
            {
                "id": "13",
                "kind": "task",
                "title": "Fuzz it",
                "status": "failed",
                "attempt": 1,
                "summary": "oom",
                "loops": True,
                "usage": USAGE,
            },
        ],
        "agents": [{"agent": "codex", "host": "mole", "sessions": 2}],
        "arrivals": [CAME],
        "events": [row("goal-created", "Port the parser", session_id="@goal/7", task_id=None)],
        "older": None,
        "usage": USAGE,
        "integrity": INTEGRITY,
        "blocks": [{"task_id": "12", **BLOCK}],
        "actions": {"cancel": {"method": "POST", "href": "/api/goals/7/cancel"}},
        "cursor": "c1",
        "digest": "ab" * 32,
        **more,
    }


def past() -> list[dict[str, Any]]:
    """Moments of a goal's history."""
    return [{"cursor": cursor, "at": AT, "kind": "goal-started"} for cursor in ("c1", "c2", "c3")]


def task(**more: Any) -> dict[str, Any]:
    return {
        "id": "13",
        "kind": "task",
        "title": "Fuzz it",
        "brief": "Ten minutes without a difference.",
        "project_id": "3",
        "goal_id": "7",
        "status": "failed",
        "attempt": 2,
        "summary": "out of memory",
        "created_at": AT,
        "attempts": [
            {
                "attempt": number,
                "status": "failed",
                "started_at": AT,
                "ended_at": AT,
                "summary": "oom",
                "sessions": ["s-1"],
            }
            for number in (1, 2)
        ],
        "sessions": [
            {
                "session_id": "s-1",
                "attempt": 2,
                "state": "failed",
                "agent": "codex",
                "model": "large",
                "host": "mole",
                "saddle": "harbour",
                "resumed_from": "s-0",
                "parent_session_id": None,
                "opened_at": AT,
                "same_run_as": None,
                "usage": USAGE,
                **DID,
            }
        ],
        "loops": True,
        "run_id": "13",
        "arrivals": [CAME],
        "current_command": None,
        "current_since": None,
        "events": [row("task-failed", "out of memory", task_id="13")],
        "older": 17,
        "usage": USAGE,
        "integrity": INTEGRITY,
        "blocks": [BLOCK],
        "actions": {"requeue": {"method": "POST", "href": "/api/tasks/13/requeue"}},
        "cursor": "c1",
        "digest": "cd" * 32,
        **more,
    }


def session(**more: Any) -> dict[str, Any]:
    return {
        "session_id": "s-1",
        "task_id": "12",
        "goal_id": "7",
        "attempt": 1,
        "state": "working",
        "saddle": "harbour",
        "agent": "codex",
        "model": "large",
        "cwd": "/srv/parser",
        "host": "mole",
        "resumed_from": "s-0",
        "parent_session_id": "s-top",
        "children": ["s-2"],
        "same_run_as": None,
        **DID,
        "opened_at": AT,
        "last_at": AT,
        "events": 3,
        "high_seq": 900,
        "missing": [[3, 4], [9, 9]],
        "conflicts": [
            {"seq": 2, "kind": "comment", "actor": "model", "payload": {"body": "other"}, "received_at": AT}
        ],
        "usage": USAGE,
        "deliveries": {"deliveries": 2, "late": 1},
        "cursor": "c1",
        **more,
    }


def events() -> list[dict[str, Any]]:
    """One event of each shape."""
    return [
        event(-1, "session.opened", {"task_id": "12", "saddle": "harbour"}),
        event(0, "message", {"role": "assistant", "text": "I begin."}),
        event(1, "tool_call", {"tool": "shell", "args": {"command": "make test"}, "call_id": "c1"}),
        event(2, "tool_result", {"call_id": "c1", "stdout": "ok", "stderr": "warned", "exit_code": 1}),
        event(3, "tool_result", {"tool": "fetch", "output": "found"}),
        event(4, "comment", {"body": "It builds."}),
        event(5, "error", {"message": "overloaded"}),
        event(6, "waiting", {"question": "May I?"}),
        event(7, "result", {"state": "suspended", "summary": "parked"}),
        event(8, "usage", {"input_tokens": 5, "output_tokens": 6}),
        event(9, "something.else", {"why": "unknown"}),
    ]


def fleet(**more: Any) -> dict[str, Any]:
    named = {"task_id": "12", "goal_id": "7", "title": "Port the parser"}
    goal_item = {
        "kind": "goal",
        "id": "7",
        "project_id": None,
        "title": "Port the parser",
        "status": "waiting",
        "run_task_id": "12",
        "attempt": 2,
        "tasks": 2,
        "summary": None,
        "created_at": AT,
        "updated_at": AT,
    }
    return {
        "saddles": [
            {"name": "harbour", "host": "mole", "version": "1", "last_contact": AT, "working": 1, "sessions": 2}
        ],
        "needs_you": [{**named, "question": "May I migrate?", "since": AT, "saddle": "harbour"}],
        "failed": [
            {**named, "goal_id": None, "summary": "oom", "at": AT, "attempt": 2, "copies": 4, "deliveries": 115}
        ],
        "silent": [{**named, "session_id": "s-1", "since": AT, "saddle": "harbour", **CURRENT}],
        "running": [
            {**goal_item, **NO_DAEMON, "since": AT, "cost_usd": 2.14, "cost_estimated": False, **CURRENT},
        ],
        "ended": [{**goal_item, "kind": "task", "status": "failed", "started_at": AT, "ended_at": AT}],
        "counts": {"goals": {"waiting": 1}, "tasks": {}, "sessions": {}},
        "integrity": {"deliveries": 9, "duplicates": 4, "conflicts": 1, "missing": 2},
        "incidents": {severity: {"open": 0, "acknowledged": 0, "resolved": 0} for severity in ("HIGH", "LOW")},
        "log_events": 48_211,
        "cursor": "c1",
        "at": AT,
        **more,
    }


def empty_fleet() -> dict[str, Any]:
    return fleet(saddles=[], needs_you=[], failed=[], silent=[], running=[], ended=[])


def goals() -> dict[str, Any]:
    item = {key: value for key, value in fleet()["running"][0].items() if key not in ("kind", "since")}
    return {"items": [{**item, "summary": "It works."}], "next": "after-this"}


def tasks() -> dict[str, Any]:
    kept = ("id", "kind", "title", "status", "attempt", "summary", "project_id", "goal_id", "created_at")
    return {"items": [{name: task()[name] for name in kept} | {"updated_at": AT}], "next": "after-this"}
