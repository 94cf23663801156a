"""The hooks of Codex CLI, by codex-rs/hooks/schema of openai/codex, and what it gives to its `notify` program.

They are those of Claude Code with fewer events and a `turn_id`; a permission is asked for by PermissionRequest. A
subagent has a thread of its own, which its `agent_id` names. `notify` tells of the end of a turn alone:
`{type: agent-turn-complete, thread-id, turn-id, cwd, input-messages, last-assistant-message}`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ledger.events import kinds
from ledger.hooks import saying
from ledger.hooks.saying import Hook, Place, Reader, Told, text
from ledger.transcripts.codex import AGENT
from ledger.transcripts.codex_rows import tool_result
from ledger.transcripts.model import HARNESS, MODEL, Said, given

EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PreCompact",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "StopFailure",
    "SessionEnd",
)

LABEL = "Codex"

_TURN_COMPLETE = "agent-turn-complete"


def place(hook: Hook) -> Place:
    session_id, agent_id = text(hook, "session_id", "thread-id"), text(hook, "agent_id")
    if agent_id and agent_id != session_id:
        return Place(agent_id, session_id)
    asked = hook.get("input-messages")
    prompt = text(hook, "prompt") or (asked[0] if isinstance(asked, list) and asked else None)
    return Place(session_id, prompt=prompt if isinstance(prompt, str) else None)


def told_by(hook: Hook) -> Told:
    name = text(hook, "hook_event_name", "type")
    if name not in _READERS:
        return Told([saying.plain(AGENT, name or "hook", hook)])
    news = saying.working() if name in ("PreToolUse", "PostToolUse") else None
    return Told(list(_READERS[name](hook)), news)


def _call(hook: Hook) -> Iterator[Said]:
    call = {"tool": hook.get("tool_name"), "args": hook.get("tool_input"), "call_id": hook.get("tool_use_id")}
    yield kinds.TOOL_CALL, MODEL, given(call)


def _result(hook: Hook) -> Iterator[Said]:
    yield kinds.TOOL_RESULT, HARNESS, tool_result(hook.get("tool_use_id"), hook.get("tool_response"))


def _permission(hook: Hook) -> Iterator[Said]:
    asked: Any = hook.get("tool_input")
    about = text(asked, "description", "command") if isinstance(asked, dict) else ""
    yield saying.waiting(f"Codex asks to use {text(hook, 'tool_name') or 'a tool'}" + (f": {about}" if about else ""))


_READERS: dict[str, Reader] = {
    "UserPromptSubmit": saying.prompted,
    "PreToolUse": _call,
    "PermissionRequest": _permission,
    "PostToolUse": _result,
    "PreCompact": saying.compacting,
    "SubagentStop": saying.child_ended,
    "Stop": saying.stopped,
    "StopFailure": saying.failed,
    "SessionEnd": saying.ended,
    _TURN_COMPLETE: saying.stopped,
}
