"""The hooks of Claude Code, by https://code.claude.com/docs/en/hooks (versions 2.0 to 2.1).

| hook | becomes |
|---|---|
| SessionStart | opens the session; `claude-code.SessionStart` |
| UserPromptSubmit | message, and `working` |
| PreToolUse | tool_call; `waiting` where the tool asks a person, else `working` if that is news |
| PostToolUse, PostToolUseFailure | tool_result; `working` if that is news |
| Notification that waits for a person | `waiting` if that is news |
| Stop | `waiting`, with the agent's last words |
| StopFailure | error, and `waiting` |
| SubagentStart, SubagentStop | opens and ends the session of the subagent |
| PreCompact | compaction |
| SessionEnd | `suspended`: whether the work is done a hook cannot know |
| any other | `claude-code.NAME` |

What a transcript tells too is said in the words of `ledger.transcripts.claude_rows`, so that the two agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ledger.events import kinds
from ledger.hooks import saying
from ledger.hooks.saying import Hook, Place, Reader, Told, text
from ledger.transcripts.claude_code import AGENT
from ledger.transcripts.claude_rows import said_by
from ledger.transcripts.model import Said

EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "Notification",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "SessionEnd",
)

LABEL = "Claude Code"

_WAITS = ("permission_prompt", "idle_prompt", "elicitation_dialog")
_OF_TOOLS = frozenset({"PreToolUse", "PostToolUse", "PostToolUseFailure"})


def place(hook: Hook) -> Place:
    """A subagent's session is called as its transcript is: `SESSION.agent-ID`."""
    session_id, agent_id = text(hook, "session_id"), text(hook, "agent_id").removeprefix("agent-")
    if agent_id:
        return Place(f"{session_id}.agent-{agent_id}", session_id)
    prompt = text(hook, "prompt") if hook.get("hook_event_name") == "UserPromptSubmit" else ""
    return Place(session_id, prompt=prompt or None)


def told_by(hook: Hook) -> Told:
    name = text(hook, "hook_event_name")
    said = list(_READERS[name](hook)) if name in _READERS else [saying.plain(AGENT, name or "hook", hook)]
    if name == "Notification" and _asks(hook):
        return Told([], saying.waiting(text(hook, "message") or "Claude Code waits for you"))
    asks = any(kind in (kinds.WAITING, kinds.RESULT) for kind, _, _ in said)
    return Told(said, saying.working() if name in _OF_TOOLS and not asks else None)


def _asks(hook: Hook) -> bool:
    """Whether a notification waits for a person; some versions leave the type away."""
    type_ = text(hook, "notification_type")
    return type_ in _WAITS if type_ else any(word in text(hook, "message") for word in ("permission", "waiting"))


def _prompt(hook: Hook) -> Iterator[Said]:
    return _said({"type": "user", "message": {"content": text(hook, "prompt")}})


def _call(hook: Hook) -> Iterator[Said]:
    block = {
        "type": "tool_use",
        "id": hook.get("tool_use_id"),
        "name": hook.get("tool_name"),
        "input": hook.get("tool_input"),
    }
    return _said({"type": "assistant", "message": {"content": [block]}})


def _result(hook: Hook) -> Iterator[Said]:
    response = hook.get("tool_response")
    return _said(_result_row(hook, {"content": output_of(response)}, response))


def _failure(hook: Hook) -> Iterator[Said]:
    return _said(_result_row(hook, {"content": text(hook, "error"), "is_error": True}, None))


def _result_row(hook: Hook, content: dict[str, Any], response: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": hook.get("tool_use_id"), **content}
    return {"type": "user", "message": {"content": [block]}, "toolUseResult": response}


def _said(row: dict[str, Any]) -> Iterator[Said]:
    return said_by(row, lambda type_: None)


def output_of(response: Any) -> str:
    """A tool's response as text: what a command wrote, the text of a content list, else its JSON."""
    if isinstance(response, dict) and isinstance(response.get("stdout"), str):
        return "\n".join(filter(None, (response["stdout"], str(response.get("stderr") or ""))))
    return saying.plain_text(response)


_READERS: dict[str, Reader] = {
    "UserPromptSubmit": _prompt,
    "PreToolUse": _call,
    "PostToolUse": _result,
    "PostToolUseFailure": _failure,
    "Stop": saying.stopped,
    "StopFailure": saying.failed,
    "SubagentStop": saying.child_ended,
    "PreCompact": saying.compacting,
    "SessionEnd": saying.ended,
}
