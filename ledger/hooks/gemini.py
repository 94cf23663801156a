"""The hooks of Gemini CLI, by docs/hooks/reference.md of google-gemini/gemini-cli. They name no calls."""

from __future__ import annotations

from collections.abc import Iterator

from ledger.events import kinds
from ledger.hooks import saying
from ledger.hooks.saying import Hook, Place, Reader, Told, text
from ledger.transcripts.gemini import AGENT
from ledger.transcripts.model import HARNESS, MODEL, Said, given

EVENTS = (
    "SessionStart",
    "BeforeAgent",
    "BeforeTool",
    "AfterTool",
    "Notification",
    "AfterAgent",
    "PreCompress",
    "SessionEnd",
)

LABEL = "Gemini"


def place(hook: Hook) -> Place:
    return Place(text(hook, "session_id"), prompt=text(hook, "prompt") or None)


def told_by(hook: Hook) -> Told:
    name = text(hook, "hook_event_name")
    if name == "Notification":
        return Told([], saying.waiting(text(hook, "message") or "Gemini waits for you"))
    if name not in _READERS:
        return Told([saying.plain(AGENT, name or "hook", hook)])
    news = saying.working() if name in ("BeforeTool", "AfterTool") else None
    return Told(list(_READERS[name](hook)), news)


def _call(hook: Hook) -> Iterator[Said]:
    yield kinds.TOOL_CALL, MODEL, given({"tool": hook.get("tool_name"), "args": hook.get("tool_input")})


def _result(hook: Hook) -> Iterator[Said]:
    response = hook.get("tool_response")
    about = response if isinstance(response, dict) else {}
    error, content = about.get("error"), about.get("llmContent", response)
    payload = {"tool": hook.get("tool_name"), "output": saying.plain_text(error or content)}
    yield kinds.TOOL_RESULT, HARNESS, given({**payload, "is_error": True if error else None})


_READERS: dict[str, Reader] = {
    "BeforeAgent": saying.prompted,
    "BeforeTool": _call,
    "AfterTool": _result,
    "AfterAgent": saying.stopped,
    "PreCompress": saying.compacting,
    "SessionEnd": saying.ended,
}
