"""What commands read of their state, and how they bound what they are asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from ledger.errors import InvalidField, NotFound, StreamMoved
from ledger.events.ids import checked_id
from ledger.events.wire import Id

T = TypeVar("T")

TITLE_CHARS_MAX = 500
TEXT_CHARS_MAX = 100_000
_TRIES = 20  # each lost race is decided again on the state that won; so many in a row means something is wrong


async def again_if_moved(attempt: Callable[[], Awaitable[T]], *, but: str | None = None) -> T:
    """Decides again, on the state that won, whenever a conditional append has lost its race. The stream `but` is one
    about which the caller has decided already: that it has moved is raised."""
    for _ in range(_TRIES - 1):
        try:
            return await attempt()
        except StreamMoved as moved:
            if moved.stream == but:
                raise
    return await attempt()


def unknown(what: str, id: str) -> NotFound:
    return NotFound(f"no {what} {id!r}", code=f"unknown_{what}", hint=f"GET /api/{what}s lists them.")


def optional_id(value: Id | None, field: str, *, slash_ok: bool = False) -> str | None:
    return None if value is None else checked_id(value, field, slash_ok=slash_ok)


def bounded(text: str, field: str, chars_max: int, *, needed: bool = False) -> str:
    """The text, stripped. Raises InvalidField where it is too long, or empty though it is needed."""
    text = text.strip()
    if needed and not text:
        raise InvalidField(field, "is empty", hint=f"Say a {field}.")
    if len(text) > chars_max:
        raise InvalidField(field, f"has {len(text)} characters", hint=f"Send at most {chars_max}.")
    return text
