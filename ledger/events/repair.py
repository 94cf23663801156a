"""Mends what agents do produce and strict JSON refuses, and nothing else: every other byte stays as it came."""

from __future__ import annotations

import re

from ledger.errors import MalformedBody
from ledger.events.scan import STRING

# What was mended, as a receipt names it
INVALID_UTF8 = "invalid_utf8"  # → U+FFFD
LONE_SURROGATE = "lone_surrogate"  # → U+FFFD
CONTROL_CHARACTER = "control_character"  # in a string → its escape; in a kind or actor → U+FFFD
NON_FINITE_NUMBER = "non_finite_number"  # → null
BAD_TIME = "bad_time"  # `at` left out

_ESCAPE = rb"(?<!\\)((?:\\\\)*+)\\"  # the backslash of an escape: not one that is itself escaped
_HIGH_OR_LOW = rb"u[dD][89a-fA-F][0-9a-fA-F]{2}"
_PAIR = rb"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_SURROGATE = re.compile(rb"\\" + _HIGH_OR_LOW)
_ESCAPED_SURROGATE = re.compile(_ESCAPE + rb"(?:(%s)|%s)" % (_PAIR, _HIGH_OR_LOW))
_CONTROL = re.compile(rb"[\x00-\x1f]")
_ESCAPED_CONTROL = re.compile(_ESCAPE + rb"[\x00-\x1f]")
_NON_FINITE = re.compile(rb"NaN|Infinity")
_STRING_OR_QUOTE = re.compile(rb'%s|"' % STRING, re.DOTALL)
_STRING_OR_NON_FINITE = re.compile(rb'%s|"|-?(?:NaN|Infinity)' % STRING, re.DOTALL)
_UNFIT_FOR_NAMES = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


def mend(text: bytes) -> tuple[bytes, tuple[str, ...]]:
    """The JSON text with all that can be mended mended, and what that was, each named once.

    What is no JSON for other reasons stays so. Raises MalformedBody on reaching a string that is not closed.
    """
    mended: list[str] = []
    for what, mender in _MENDERS:
        better = mender(text)
        if better != text:
            mended.append(what)
            text = better
    return text, tuple(mended)


def mend_name(name: str) -> str:
    """A kind or actor without what no page can show and not every store can hold: that becomes U+FFFD."""
    return name if name.isprintable() else _UNFIT_FOR_NAMES.sub("\ufffd", name)


def _mend_utf8(text: bytes) -> bytes:
    try:
        text.decode()
    except UnicodeDecodeError:
        return text.decode(errors="replace").encode()
    return text


def _mend_surrogates(text: bytes) -> bytes:
    def whole(found: re.Match[bytes]) -> bytes:
        return found[0] if found[2] else found[1] + rb"\ufffd"

    return _ESCAPED_SURROGATE.sub(whole, text) if _SURROGATE.search(text) else text


def _mend_controls(text: bytes) -> bytes:
    def escaped(found: re.Match[bytes]) -> bytes:
        string = _closed(found)
        controls = set(_CONTROL.findall(string))
        if controls and _ESCAPED_CONTROL.search(string):
            return string  # a broken escape, and no telling what it meant
        for control in controls:
            string = string.replace(control, rb"\u%04x" % ord(control))
        return string

    return _STRING_OR_QUOTE.sub(escaped, text) if _CONTROL.search(text) else text


def _mend_non_finite(text: bytes) -> bytes:
    def finite(found: re.Match[bytes]) -> bytes:
        return _closed(found) if found[0].startswith(b'"') else b"null"

    return _STRING_OR_NON_FINITE.sub(finite, text) if _NON_FINITE.search(text) else text


def _closed(string: re.Match[bytes]) -> bytes:
    """Raises at the first string that is not closed: each quote after it would read to the end again."""
    if string[0] == b'"':
        raise MalformedBody(f"the string that begins at byte {string.start()} is not closed")
    return string[0]


_MENDERS = (
    (INVALID_UTF8, _mend_utf8),
    (LONE_SURROGATE, _mend_surrogates),
    (CONTROL_CHARACTER, _mend_controls),
    (NON_FINITE_NUMBER, _mend_non_finite),
)
