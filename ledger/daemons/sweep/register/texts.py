"""Texts of a model on their way into Markdown: one line each, that can be nothing but text.

What would begin a heading, a list, a quotation, a rule or a fence is escaped where the line begins; what would begin
an element inside a line, anywhere: HTML, links and pictures, entities, code, emphasis, strokes, bare addresses.
"""

from __future__ import annotations

import re
import unicodedata

_ACTIVE = re.compile(
    r"\A[-+#>]|[\\`*<\[\]&]|(?<![^\W_])_|_(?![^\W_])|(?<=\S)~|~(?=~)"  # snake_case and ~/folder stay
    r"|(?<=[A-Za-z])(?=://)|(?<=www)(?=\.)|(?<=\S)(?=@\S)",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"\A([0-9]{1,9})(?=[.)])")
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}


def one_line(text: str, chars_max: int) -> str:
    """The text on one line of bounded length, with spaces for control, directional and invisible characters: what
    they held apart stays apart, and no secret comes together behind those who looked for it."""
    spaced = " ".join("".join(map(_visible, text[: 4 * chars_max])).split())
    return spaced if len(spaced) <= chars_max else spaced[: chars_max - 1].rstrip() + "…"


def escaped(line: str) -> str:
    """A line so that Markdown shows it as it is."""
    return _NUMBERED.sub(r"\1\\", _ACTIVE.sub(lambda found: "\\" + found[0], line))


def _visible(char: str) -> str:
    if char.isascii():
        return char if " " <= char <= "~" else " "
    return " " if unicodedata.category(char) in _HIDDEN else char
