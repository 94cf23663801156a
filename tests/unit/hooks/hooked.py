"""Hooks as agents run them, written for the tests."""

from __future__ import annotations

import json
from typing import Any

from ledger.hooks.telling import Record

S = "aaaa-1"
TICK = 180_000_000_000_000


def claude(name: str, **fields: Any) -> dict[str, Any]:
    return {"session_id": S, "cwd": "/srv/My App", "hook_event_name": name, **fields}


def bash(name: str, command: str = "make test", call_id: str = "toolu_1", **fields: Any) -> dict[str, Any]:
    return claude(name, tool_name="Bash", tool_input={"command": command}, tool_use_id=call_id, **fields)


def record(hook: Any, n: int = 0, *, agent: str = "claude-code", within: str = "") -> Record:
    """The n-th thing that a hook left in the spool."""
    return Record(agent, TICK + n, within, hook if isinstance(hook, bytes) else json.dumps(hook).encode())
