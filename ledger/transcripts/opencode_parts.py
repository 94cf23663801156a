"""What a part of an opencode message says, as kinds of the ledger. Pure.

This follows the types of opencode 0.x to 1.x (`MessageV2`). A part is written over while it comes in; it is read once
it has settled, so that reading earlier or later, from the database, the older files or a stream, says the same.

| part | becomes |
|---|---|
| text | message; typed by a person also result `working` |
| reasoning | message, role `thinking` |
| tool | tool_call once it runs, tool_result once it has ended; `waiting` where the tool asks a person |
| step-finish | usage, known by the part's id |
| retry; a message's error | error |
| compaction | compaction |
| file | message: its name, not its data |
| any other part | `opencode.TYPE` with the part as payload |

`output_tokens` include what was reasoned; `input_tokens` are those that were not cached, as opencode has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ledger.events import kinds
from ledger.transcripts.model import HARNESS, MODEL, USER, Row, Said, given

AGENT = "opencode"

_LEFT_OUT = frozenset({"step-start", "snapshot", "patch", "agent"})


def is_settled(part: Row, message: Row) -> bool:
    """True where the part will not be written over, but for a tool, whose call settles before its result."""
    type_ = part.get("type")
    if type_ in ("text", "reasoning") and message.get("role") == "assistant":
        return _ended(part) or is_complete(message)
    if type_ == "tool":
        return _state(part).get("status") in ("running", "completed", "error")
    return True


def is_complete(message: Row) -> bool:
    times = message.get("time")
    return bool(message.get("error")) or (isinstance(times, dict) and times.get("completed") is not None)


def said_by(part: Row, role: str) -> Iterator[Said | None]:
    """The events of a settled part of a message of `role` (`user` or `assistant`), in order. What a part does not
    say yet is None: its place is kept."""
    type_ = part.get("type")
    if type_ == "text":
        yield from _text(part, role)
    elif type_ == "reasoning":
        if str(part.get("text") or "").strip():
            yield kinds.MESSAGE, MODEL, {"role": "thinking", "text": part["text"]}
    elif type_ == "tool":
        yield from _tool(part)
    elif type_ == "step-finish":
        yield kinds.USAGE, MODEL, _usage(part)
    elif type_ == "retry":
        yield kinds.ERROR, HARNESS, given({"message": error_text(part.get("error")), "retry": part.get("attempt")})
    elif type_ == "compaction":
        yield kinds.COMPACTION, HARNESS, given({"trigger": _trigger(part.get("auto"))})
    elif type_ == "file":
        name = part.get("filename") or part.get("mime") or "file"
        yield kinds.MESSAGE, USER if role == "user" else MODEL, {"role": role, "text": f"[file {name}]"}
    elif type_ not in _LEFT_OUT:
        about = ("id", "sessionID", "messageID", "type")
        payload = {name: value for name, value in part.items() if name not in about}
        yield f"opencode.{str(type_)[:100]}", HARNESS, payload


def error_of(message: Row) -> Said | None:
    """What a message came to grief by, if it did."""
    error = message.get("error")
    if not error:
        return None
    if isinstance(error, dict) and error.get("name") == "MessageAbortedError":
        return kinds.MESSAGE, HARNESS, {"role": HARNESS, "text": "Aborted"}
    return kinds.ERROR, HARNESS, {"message": error_text(error)}


def error_text(error: Any) -> str:
    """`{name, data: {message}}` as its message, else its name."""
    if not isinstance(error, dict):
        return str(error or "error")
    data = error.get("data")
    message = data.get("message") if isinstance(data, dict) else error.get("message")
    return str(message or error.get("name") or "error")


def _text(part: Row, role: str) -> Iterator[Said]:
    text = part.get("text")
    if not isinstance(text, str) or not text.strip():
        return
    if role == "assistant":
        yield kinds.MESSAGE, MODEL, {"role": "assistant", "text": text}
    elif part.get("synthetic") or part.get("ignored"):
        yield kinds.MESSAGE, HARNESS, {"role": HARNESS, "text": text}
    else:
        yield kinds.MESSAGE, USER, {"role": "user", "text": text}
        yield kinds.RESULT, HARNESS, {"state": kinds.WORKING}


def _tool(part: Row) -> Iterator[Said | None]:
    state, tool, call_id = _state(part), part.get("tool"), part.get("callID")
    yield kinds.TOOL_CALL, MODEL, given({"tool": tool, "args": state.get("input"), "call_id": call_id})
    asks = tool in ("question", "ask")
    question = given({"question": _question(state.get("input")), "call_id": call_id})
    yield (kinds.WAITING, MODEL, question) if asks else None
    status = state.get("status")
    if status not in ("completed", "error"):
        return
    metadata = state.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    code = metadata.get("exit", metadata.get("exitCode"))
    failed = status == "error" or (isinstance(code, int) and code != 0)
    output = state.get("output") if status == "completed" else error_text(state.get("error"))
    payload = {
        "call_id": call_id,
        "tool": tool,
        "output": output if isinstance(output, str) else "",
        "exit_code": code if isinstance(code, int) else None,
        "is_error": True if failed else None,
    }
    yield kinds.TOOL_RESULT, HARNESS, given(payload)
    if asks:
        yield kinds.RESULT, HARNESS, given({"state": kinds.WORKING, "call_id": call_id})


def _usage(part: Row) -> dict[str, Any]:
    tokens = part.get("tokens")
    tokens = tokens if isinstance(tokens, dict) else {}
    cache = tokens.get("cache")
    cache = cache if isinstance(cache, dict) else {}
    return given(
        {
            "message_id": part.get("id"),
            "input_tokens": _count(tokens.get("input")),
            "output_tokens": _count(tokens.get("output")) + _count(tokens.get("reasoning")),
            "cache_read_tokens": _count(cache.get("read")),
            "cache_write_tokens": _count(cache.get("write")),
            "cost_usd": part.get("cost"),
        }
    )


def _state(part: Row) -> Row:
    state = part.get("state")
    return state if isinstance(state, dict) else {}


def _ended(part: Row) -> bool:
    times = part.get("time")
    return isinstance(times, dict) and times.get("end") is not None


def _question(args: Any) -> str:
    questions = args.get("questions") if isinstance(args, dict) else None
    texts = [str(one.get("question", "")) for one in questions or () if isinstance(one, dict)]
    return "\n".join(filter(None, texts))


def _trigger(auto: Any) -> str | None:
    return {True: "auto", False: "manual"}.get(auto) if isinstance(auto, bool) else None


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
