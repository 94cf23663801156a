"""Reading payloads that anything may have written: a field of the wrong type never stops a fold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ledger.events.model import ID_CHARS_MAX


def text(payload: Mapping[str, Any], name: str) -> str:
    """The field as text: empty if it is missing or null, JSON if it is no string."""
    value = payload.get(name)
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def text_or_none(payload: Mapping[str, Any], name: str) -> str | None:
    return text(payload, name) or None


def identifier(payload: Mapping[str, Any], name: str) -> str | None:
    """The field as an id: a string, or an integer as its decimal string; None if it is neither."""
    value = payload.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return value if isinstance(value, str) and 0 < len(value) <= ID_CHARS_MAX else None


def fact_of(payload: Mapping[str, Any]) -> str | None:
    """What the fact is known by whoever reports it, under whatever session and seq: the call that it is about, or the
    message. None where the payload names neither."""
    for name in ("call_id", "message_id"):
        value = payload.get(name)
        if isinstance(value, str) and 0 < len(value) <= ID_CHARS_MAX:
            return f"{name} {value}"
    return None
