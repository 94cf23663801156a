"""What one row of a Codex rollout says, as kinds of the ledger. Pure, and a function of the row and the thread alone.

The format has no specification; this follows files written by versions 0.47 to 0.125 and the types of codex-rs.
A rollout says many things twice: as an item that went to the model, and as an event for the screen.

| row | becomes |
|---|---|
| event user_message | message, and result `working`: what was waited for has been said |
| item message: assistant | message |
| item message: user, put there by the harness | message, role `harness` |
| item reasoning, with a summary | message, role `thinking` |
| item function_call, custom_tool_call, local_shell_call, web_search_call | tool_call; `waiting` where it asks |
| item function_call_output, custom_tool_call_output | tool_result |
| event token_count | usage |
| event error, stream_error | error |
| event turn_aborted | message, role `harness` |
| compacted | compaction |
| any other row | `codex.TYPE` with the payload: nothing is lost because it is new |

Usage. `token_count` rows repeat, and a fork copies its parent's: so the running total, which grows with each
request, is what a request is known by within the thread, and its own tokens (`last_token_usage`) are what counts.
Codex counts cached tokens as input as well; here `input_tokens` are those that were not cached.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from ledger.events import kinds
from ledger.transcripts.model import HARNESS, MODEL, USER, Row, Said, given

Skip = Callable[[str], None]

_SAID_ELSEWHERE = frozenset(
    {
        "agent_message",
        "agent_reasoning",
        "agent_reasoning_raw_content",
        "agent_reasoning_section_break",
        "background_event",
        "context_compacted",
        "entered_review_mode",
        "exec_command_begin",
        "exec_command_end",
        "exited_review_mode",
        "item_completed",
        "item_started",
        "mcp_tool_call_begin",
        "mcp_tool_call_end",
        "patch_apply_begin",
        "patch_apply_end",
        "task_complete",
        "task_started",
        "turn_complete",
        "turn_diff",
        "turn_started",
        "view_image_tool_call",
        "web_search_begin",
        "web_search_end",
    }
)
_ITEMS = frozenset({"message", "reasoning", "function_call", "function_call_output", "local_shell_call"})
_INJECTED = (
    "<environment_context>",
    "<user_instructions>",
    "<INSTRUCTIONS>",
    "<turn_aborted>",
    "<user_shell_command>",
)
_INJECTED_TITLES = ("# AGENTS.md instructions", "# Context from my IDE")
_EXIT_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,5})$", re.MULTILINE)
_HEADER_CHARS_MAX = 400  # of an output: where the shell tool says how its command ended


def said_by(row: Row, thread_id: str, skip: Skip) -> Iterator[Said]:
    """The events of a row, in order. `skip` is told the type of each row that is left out."""
    type_, payload = row.get("type"), row.get("payload")
    if "payload" not in row and type_ in _ITEMS:  # as the first versions wrote
        yield from _item(row, skip, bare=True)
    elif type_ == "response_item" and isinstance(payload, dict):
        yield from _item(payload, skip)
    elif type_ == "event_msg" and isinstance(payload, dict):
        yield from _event(payload, thread_id, skip)
    elif type_ == "compacted":
        yield kinds.COMPACTION, HARNESS, {}
    elif type_ in ("session_meta", "turn_context", "world_state") or type_ is None:
        skip(str(type_ or row.get("record_type") or "head"))
    else:
        yield _unknown(str(type_), payload if isinstance(payload, dict) else row)


def typed_text(row: Row) -> str | None:
    """What a person typed in this row, or None: the title of a session is the first of these."""
    payload = row.get("payload")
    if isinstance(payload, dict) and payload.get("type") == "user_message":
        text = payload.get("message")
    elif row.get("type") == "message" and row.get("role") == "user":
        text = content_text(row.get("content"))
    else:
        return None
    return text if isinstance(text, str) and text.strip() and not _is_injected(text) else None


# Items: what went to the model and came from it


def _item(item: Row, skip: Skip, *, bare: bool = False) -> Iterator[Said]:
    type_ = item.get("type")
    if type_ == "message":
        yield from _message(item, skip, bare)
    elif type_ == "reasoning":
        text = content_text(item.get("summary"))
        if text.strip():
            yield kinds.MESSAGE, MODEL, {"role": "thinking", "text": text}
        else:
            skip("reasoning without a summary")
    elif type_ in ("function_call", "custom_tool_call", "local_shell_call", "web_search_call"):
        yield from _call(item)
    elif type_ in ("function_call_output", "custom_tool_call_output"):
        call_id, output = item.get("call_id"), item.get("output")
        yield kinds.TOOL_RESULT, HARNESS, tool_result(call_id, output)
        answer = _parsed(output)
        if isinstance(answer, dict) and "answers" in answer:  # a person has answered what the tool asked
            yield kinds.RESULT, HARNESS, given({"state": kinds.WORKING, "call_id": call_id})
    elif type_ in ("ghost_snapshot", "compaction", "compaction_summary"):
        skip(str(type_))
    else:
        yield _unknown(str(type_), item)


def _message(item: Row, skip: Skip, bare: bool) -> Iterator[Said]:
    role, text = item.get("role"), content_text(item.get("content"))
    if not text.strip():
        skip("blank text")
    elif role == "assistant":
        yield kinds.MESSAGE, MODEL, {"role": "assistant", "text": text}
    elif role != "user":
        skip(f"message/{role}")
    elif _is_injected(text):
        yield kinds.MESSAGE, HARNESS, {"role": HARNESS, "text": text}
    elif bare:
        yield from _typed(text)
    else:
        skip("message/user")  # said by the event `user_message`


def _typed(text: str) -> Iterator[Said]:
    yield kinds.MESSAGE, USER, {"role": "user", "text": text}
    yield kinds.RESULT, HARNESS, {"state": kinds.WORKING}


def _call(item: Row) -> Iterator[Said]:
    type_, call_id = item.get("type"), item.get("call_id") or item.get("id")
    if type_ == "function_call":
        tool, args = item.get("name"), _parsed(item.get("arguments"))
    elif type_ == "custom_tool_call":
        tool, args = item.get("name"), {"input": item.get("input")}
    else:
        tool, args = str(type_).removesuffix("_call"), item.get("action")
    yield kinds.TOOL_CALL, MODEL, given({"tool": tool, "args": args, "call_id": call_id})
    if tool == "request_user_input":
        questions = args.get("questions") if isinstance(args, dict) else None
        texts = [str(one.get("question", "")) for one in questions or () if isinstance(one, dict)]
        yield kinds.WAITING, MODEL, given({"question": "\n".join(filter(None, texts)), "call_id": call_id})


def tool_result(call_id: Any, output: Any) -> dict[str, Any]:
    """The result as the model saw it, with the exit code where the output says one: as JSON beside it
    (`{output, metadata: {exit_code}}`), or in the lines before it."""
    payload: dict[str, Any] = {"call_id": call_id}
    said = _parsed(output) if isinstance(output, str) and output.startswith("{") else output
    if isinstance(said, dict) and ("output" in said or "content" in said):
        metadata = said.get("metadata")
        code = metadata.get("exit_code") if isinstance(metadata, dict) else None
        text = said.get("output") if "output" in said else said.get("content")
        payload["output"] = text if isinstance(text, str) else content_text(text)
        if said.get("success") is False:
            payload["is_error"] = True
    else:
        payload["output"] = output if isinstance(output, str) else content_text(output)
        found = _EXIT_CODE.search(payload["output"], 0, _HEADER_CHARS_MAX)
        code = int(found[1]) if found and "Output:" not in payload["output"][: found.start()] else None
    if isinstance(code, int):
        payload["exit_code"] = code
        if code:
            payload["is_error"] = True
    return payload


# Events: what the screen was told


def _event(event: Row, thread_id: str, skip: Skip) -> Iterator[Said]:
    type_ = event.get("type")
    if type_ == "token_count":
        info = event.get("info")
        if isinstance(info, dict) and isinstance(info.get("total_token_usage"), dict):
            yield kinds.USAGE, MODEL, _usage(info, thread_id)
        else:
            skip("token_count without tokens")
    elif type_ == "user_message":
        text = str(event.get("message") or "")
        images = len(event.get("images") or ()) + len(event.get("local_images") or ())
        text = "\n".join(filter(None, [text, *["[image]"] * images]))
        if text.strip():
            yield from _typed(text)
        else:
            skip("blank text")
    elif type_ in ("error", "stream_error"):
        yield kinds.ERROR, HARNESS, {"message": str(event.get("message") or type_)}
    elif type_ == "turn_aborted":
        reason = event.get("reason") or "interrupted"
        yield kinds.MESSAGE, HARNESS, {"role": HARNESS, "text": f"Turn aborted: {reason}"}
    elif type_ in _SAID_ELSEWHERE:
        skip(str(type_))
    else:
        yield _unknown(str(type_), event)


def _usage(info: Row, thread_id: str) -> dict[str, Any]:
    total, last = info["total_token_usage"], info.get("last_token_usage")
    if not isinstance(last, dict):  # then only the whole is known, and its last report counts
        return usage(f"codex-{thread_id}-total", total)
    counts = (total.get(name, 0) for name in ("input_tokens", "cached_input_tokens", "output_tokens", "total_tokens"))
    return usage(f"codex-{thread_id}-{'-'.join(map(str, counts))}", last)


def usage(message_id: str, tokens: Row) -> dict[str, Any]:
    """A `usage` payload of Codex's token counts. Output includes what was reasoned."""
    cached = _count(tokens.get("cached_input_tokens"))
    return {
        "message_id": message_id,
        "input_tokens": max(_count(tokens.get("input_tokens")) - cached, 0),
        "output_tokens": _count(tokens.get("output_tokens")),
        "cache_read_tokens": cached,
    }


# Parts of rows


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def content_text(content: Any) -> str:
    """The texts of a content list, joined; of an image, that there was one."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else orjson.dumps(content).decode()
    parts = [part for part in content if isinstance(part, dict)]
    return "\n".join(
        text if isinstance(text := part.get("text"), str) else f"[{part.get('type', 'part')}]" for part in parts
    )


def _is_injected(text: str) -> bool:
    opening = text.lstrip()
    return opening.startswith(_INJECTED) or opening.startswith(_INJECTED_TITLES)


def _parsed(text: Any) -> Any:
    """JSON text as its value; anything else as it is."""
    if not isinstance(text, str):
        return text
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _unknown(type_: str, payload: Row) -> Said:
    """A row of a type that is not known. The prefix keeps it from being taken for a kind with a meaning."""
    return f"codex.{type_[:100]}", HARNESS, {name: value for name, value in payload.items() if name != "type"}
