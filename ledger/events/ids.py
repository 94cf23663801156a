"""What may be the id of a session, task, goal or project."""

from __future__ import annotations

import re

from ledger.errors import InvalidField
from ledger.events.kinds import is_own_stream
from ledger.events.model import ID_CHARS_MAX

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_LOST = re.compile("[\ud800-\udfff\ufffd]")  # half a character, or the mark of one that was lost: ids would collide
_INT_BITS_MAX = 700  # more than 200 digits


def checked_id(value: str | int, field: str, *, own_streams_ok: bool = False, slash_ok: bool = True) -> str:
    """The id as text: a JSON integer is taken as its decimal string. `field` names it in the error.

    `own_streams_ok` lets through the names of the ledger's own streams (`@goal/7`); without `slash_ok` an id may hold
    no slash, as those of tasks, goals and projects may not. Raises InvalidField.
    """
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InvalidField(field, "is no id", hint="Send a string or an integer.")
    if isinstance(value, int) and value.bit_length() > _INT_BITS_MAX:
        raise InvalidField(field, f"has more than {ID_CHARS_MAX} digits", hint="Send a shorter id.")
    text = str(value)
    if not 1 <= len(text) <= ID_CHARS_MAX:
        raise InvalidField(
            field, f"has {len(text)} characters", hint=f"Send an id of 1 to {ID_CHARS_MAX} characters."
        )
    if is_own_stream(text) and not own_streams_ok:
        raise InvalidField(field, "begins with @", hint="Ids that begin with @ are the ledger's own streams.")
    if found := _CONTROL.search(text):
        raise InvalidField(
            field, f"holds the control character U+{ord(found[0]):04X}", hint="Send an id of printable characters."
        )
    if found := _LOST.search(text):
        raise InvalidField(
            field, f"holds U+{ord(found[0]):04X}, so a character of it was lost", hint="Send the id in whole UTF-8."
        )
    if "/" in text and not slash_ok:
        raise InvalidField(field, "holds a slash", hint="Ids of tasks, goals and projects hold no slash.")
    return text
