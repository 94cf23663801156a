"""Text for a terminal: what agents wrote can say anything there, and control nothing."""

from __future__ import annotations

import re

# ESC with what it introduces: CSI, the strings (OSC, DCS, …) up to their end, and the two-character ones
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str) -> str:
    """`text` without terminal sequences; other control characters, directional marks and lone surrogates
    become visible: NUL is ␀, U+202E is ‹U+202E›. Line feeds and tabs stay."""
    return _CONTROL.sub(_mark, _SEQUENCE.sub("", text.replace("\r\n", "\n")))


def one_line(text: str) -> str:
    """As `plain`, with all white space as single spaces."""
    return " ".join(plain(text).split())


def counted(number: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _mark(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"‹U+{code:04X}›"
