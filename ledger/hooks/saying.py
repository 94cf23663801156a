"""What the hooks of all agents have in common: how a hook becomes events, and what session it belongs to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ledger.events import kinds
from ledger.transcripts.model import HARNESS, MODEL, USER, Said, given

Hook = dict[str, Any]  # what the agent gives its hook
Reader = Callable[[Hook], Iterator[Said]]

QUESTION_CHARS_MAX = 4_000

_ENVELOPE = frozenset(
    {"session_id", "transcript_path", "cwd", "hook_event_name", "timestamp", "permission_mode", "agent_id"}
)


class Place(NamedTuple):
    """Where a hook belongs, by the agent's own ids. `parent` is set for a subagent's session; `prompt` is what a
    person typed, where this hook tells it."""

    session_id: str
    parent: str | None = None
    prompt: str | None = None


class Told(NamedTuple):
    """`said` are the events of a hook, in order. `state` is how the session stands after it, where the hook only
    suggests so: it is pushed where it is news."""

    said: list[Said]
    state: Said | None = None


def text(hook: Hook, *names: str) -> str:
    """The first of the fields that is a text with something in it; empty if none is."""
    return next((value for name in names if isinstance(value := hook.get(name), str) and value.strip()), "")


def plain_text(value: Any) -> str:
    """A tool's output as text: the texts of a content list, else its JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        return str(value["text"])
    if isinstance(value, list) and value and all(isinstance(part, dict) and "text" in part for part in value):
        return "\n".join(str(part["text"]) for part in value)
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def prompted(hook: Hook) -> Iterator[Said]:
    yield kinds.MESSAGE, USER, {"role": "user", "text": text(hook, "prompt")}
    yield working()


def working() -> Said:
    return kinds.RESULT, HARNESS, {"state": kinds.WORKING}


def waiting(question: str, actor: str = HARNESS) -> Said:
    cut = question if len(question) <= QUESTION_CHARS_MAX else question[: QUESTION_CHARS_MAX - 1] + "…"
    return kinds.WAITING, actor, {"question": cut}


def stopped(hook: Hook) -> Iterator[Said]:
    """The turn is over: it is the person's turn, with the agent's last words as the question."""
    yield waiting(text(hook, "last_assistant_message", "prompt_response", "last-assistant-message"), MODEL)


def failed(hook: Hook) -> Iterator[Said]:
    """The turn ended by an error of the model's API: nothing goes on without a person."""
    message = text(hook, "last_assistant_message", "error_details", "error") or "the turn failed"
    yield kinds.ERROR, HARNESS, given({"message": message, "error": hook.get("error")})
    yield waiting(message)


def ended(hook: Hook) -> Iterator[Said]:
    """The agent has left. It may be resumed, and whether its work is done a hook cannot know."""
    reason = text(hook, "reason")
    summary = f"The session ended ({reason})" if reason else "The session ended"
    yield kinds.RESULT, HARNESS, {"state": kinds.SUSPENDED, "summary": summary}


def child_ended(hook: Hook) -> Iterator[Said]:
    summary = text(hook, "last_assistant_message") or None
    yield kinds.RESULT, HARNESS, given({"state": kinds.DONE, "summary": summary})


def compacting(hook: Hook) -> Iterator[Said]:
    yield kinds.COMPACTION, HARNESS, given({"trigger": hook.get("trigger")})


def plain(agent: str, name: str, hook: Hook) -> Said:
    """A hook without a kind of its own. The prefix keeps it from being taken for a kind with a meaning."""
    return f"{agent}.{name[:100]}", HARNESS, {key: value for key, value in hook.items() if key not in _ENVELOPE}
