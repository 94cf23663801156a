"""What a session did, in short: how much it said and ran, what it was asked first and what its model said last.

Counts and texts go by seq, so the order in which events come changes nothing. Of a tool's result only how it ended is
decoded: outputs are long, and most of a log.
"""

from __future__ import annotations

from typing import Any

import msgspec
from immutables import Map

from ledger.events import kinds
from ledger.events.model import NO_EVENTS, Recorded

TEXT_CHARS_MAX = 2_000

_ASSISTANT, _USER = "assistant", "user"


class Doing(msgspec.Struct, frozen=True, gc=False):
    """`messages` are those of a person or the model, its thoughts left out. `first_seq` and `last_seq` are the seqs
    that `first_prompt` and `last_words` come from, NO_EVENTS before any."""

    messages: int = 0
    tool_calls: int = 0
    failed_calls: int = 0
    first_prompt: str = ""
    first_seq: int = NO_EVENTS
    last_words: str = ""
    last_seq: int = NO_EVENTS


class _Message(msgspec.Struct):
    role: Any = None
    text: Any = None


class _Result(msgspec.Struct):
    exit_code: Any = None
    is_error: Any = None


_message = msgspec.json.Decoder(_Message)
_result = msgspec.json.Decoder(_Result)
_NOTHING = Doing()


def evolve(doing: Map[str, Doing], event: Recorded) -> Map[str, Doing]:
    """With a `message`, a `tool_call` or a `tool_result`."""
    before = doing.get(event.session_id, _NOTHING)
    if event.kind == kinds.TOOL_CALL:
        after = msgspec.structs.replace(before, tool_calls=before.tool_calls + 1)
    elif event.kind == kinds.TOOL_RESULT:
        after = _ended(before, event)
    else:
        after = _said(before, event)
    return doing if after is before else doing.set(event.session_id, after)


def result_failed(exit_code: object, is_error: object) -> bool:
    """Whether a tool's result says that it failed: an exit code other than 0, or a plain `is_error`."""
    return exit_code not in (None, "", 0, "0") or is_error is True


def doing_item(doing: Doing | None) -> dict[str, Any]:
    """Ready for JSON; what was not said is null."""
    doing = _NOTHING if doing is None else doing
    return {
        "messages": doing.messages,
        "tool_calls": doing.tool_calls,
        "failed_calls": doing.failed_calls,
        "first_prompt": doing.first_prompt or None,
        "last_words": doing.last_words or None,
    }


def _ended(doing: Doing, event: Recorded) -> Doing:
    try:
        result = _result.decode(event.payload)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):  # no object, or nothing that says how it ended
        return doing
    if not result_failed(result.exit_code, result.is_error):
        return doing
    return msgspec.structs.replace(doing, failed_calls=doing.failed_calls + 1)


def _said(doing: Doing, event: Recorded) -> Doing:
    try:
        message = _message.decode(event.payload)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return doing
    if message.role not in (_ASSISTANT, _USER) or not isinstance(message.text, str):
        return doing
    text, seq = message.text.strip()[:TEXT_CHARS_MAX], event.seq
    messages = doing.messages + 1
    if text and message.role == _ASSISTANT and seq > doing.last_seq:
        return msgspec.structs.replace(doing, messages=messages, last_words=text, last_seq=seq)
    if text and message.role == _USER and (doing.first_seq == NO_EVENTS or seq < doing.first_seq):
        return msgspec.structs.replace(doing, messages=messages, first_prompt=text, first_seq=seq)
    return msgspec.structs.replace(doing, messages=messages)
