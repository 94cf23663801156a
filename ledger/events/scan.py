"""Takes JSON text apart without decoding it: by loops, never by recursion, in time linear in its length.

It finds where values begin and end, so that one bad value costs only itself. It does not judge what lies between
brackets; whoever keeps a part decodes that part. Bytes above 0x7F belong inside strings, so UTF-8 need not be valid.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import accumulate

from ledger.errors import MalformedBody

STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'  # for re.DOTALL; possessive: an unclosed one fails in linear time

_SPACE = rb"[ \t\n\r]*+"
_STRING = re.compile(STRING, re.DOTALL)
_SCALAR = re.compile(rb'[^ \t\n\r"\[\]{},:]++')
_OPENING = re.compile(_SPACE + rb"([\[{])" + _SPACE)
_KEY = re.compile(rb"(%s)%s:%s" % (STRING, _SPACE, _SPACE), re.DOTALL)
_AFTER = re.compile(_SPACE + rb"([,\]}])" + _SPACE)
# Strings with what lies between them, some at a time; a run of like brackets; or the quote of an unclosed string, so
# that a search never reads to the end in vain. Possessive repeats hold nothing that could fail half-way, which Python
# before 3.11.5 gets wrong.
_TOKEN = re.compile(
    rb'%s(?:[^"\[\]{}]*+%s){0,50}|(?P<opening>[\[{]++)|(?P<closing>[\]}]++)|(?P<unclosed>")' % (STRING, STRING),
    re.DOTALL,
)

_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


def members(text: bytes) -> dict[str, bytes]:
    """The members of the one object that `text` is: decoded key → raw value; the last of a repeated key counts.

    Raises MalformedBody where it is none.
    """
    found: dict[str, bytes] = {}
    position = _opened(text, b"{", b"}")
    while position >= 0:
        key = _KEY.match(text, position)
        if key is None:
            raise _malformed(text, position)
        end = _value_end(text, key.end())
        found[_key_text(key[1], position)] = text[key.end() : end]
        position = _next(text, end, b"}")
    return found


def elements(text: bytes) -> Iterator[bytes]:
    """The raw elements of the one array that `text` is. Raises MalformedBody on reaching what makes it none."""
    position = _opened(text, b"[", b"]")
    while position >= 0:
        end = _value_end(text, position)
        yield text[position:end]
        position = _next(text, end, b"]")


def nested_deeper(text: bytes, levels: int) -> bool:
    """True if brackets are nested deeper than `levels`; a scalar has none, a flat object one. All strings of `text`
    must be closed."""
    if text.count(b"[") + text.count(b"{") <= levels:
        return False
    brackets = _STRING.sub(b"", text).translate(None, _NO_BRACKETS)
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0) > levels


def _opened(text: bytes, opening: bytes, closing: bytes) -> int:
    """Where the first value of the container begins; -1 if it is empty."""
    found = _OPENING.match(text)
    if found is None or found[1] != opening:
        raise _malformed(text, 0)
    empty = text[found.end() : found.end() + 1] == closing
    return _next(text, found.end(), closing) if empty else found.end()


def _next(text: bytes, end: int, closing: bytes) -> int:
    """Where the value after the one that ended at `end` begins; -1 if the container, and with it the text, ends."""
    found = _AFTER.match(text, end)
    if found is None:
        raise _malformed(text, end)
    if found[1] == b",":
        return found.end()
    if found[1] != closing or found.end() != len(text):
        raise _malformed(text, end)
    return -1


def _value_end(text: bytes, start: int) -> int:
    if text[start : start + 1] in (b"[", b"{"):
        return _container_end(text, start)
    found = _STRING.match(text, start) or _SCALAR.match(text, start)
    if found is None:
        raise _malformed(text, start)
    return found.end()


def _container_end(text: bytes, start: int) -> int:
    level = 0
    for found in _TOKEN.finditer(text, start):
        which = found.lastgroup
        if which is None:
            continue  # strings
        run = found.end() - found.start()
        if which == "opening":
            level += run
        elif which == "unclosed":
            break
        elif run < level:
            level -= run
        else:
            return found.start() + level
    raise _malformed(text, len(text))


def _key_text(raw: bytes, position: int) -> str:
    if b"\\" not in raw:
        return raw[1:-1].decode(errors="replace")
    try:
        key: str = json.loads(raw.decode(errors="replace"), strict=False)
    except json.JSONDecodeError as error:
        raise MalformedBody(f"the key at byte {position} is no JSON string: {error.msg}") from error
    return key


def _malformed(text: bytes, position: int) -> MalformedBody:
    if position >= len(text):
        return MalformedBody("the JSON text is cut short")
    return MalformedBody(f"JSON is malformed at {text[position : position + 20]!r}")
