"""Texts of a model on their way into Markdown: one line each, that can be nothing but text.

A line without breaks that stands behind other words begins no heading, list, table, quotation or fence; what would
begin an element inside a line is escaped: HTML, links and pictures, entities, code, emphasis, bare addresses.
"""

from __future__ import annotations

import re
import unicodedata

_ACTIVE = re.compile(r"[\\`*<\[\]&]|(?<=[A-Za-z])(?=://)|(?<=www)(?=\.)|(?<=\S)(?=@\S)", re.IGNORECASE)
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def one_line(text: str, chars_max: int) -> str:
    """The text on one line of bounded length, without control, directional and invisible characters."""
    spaced = " ".join("".join(map(_visible, text[: 4 * chars_max])).split())
    return spaced if len(spaced) <= chars_max else spaced[: chars_max - 1].rstrip() + "…"


def escaped(line: str) -> str:
    """A line so that Markdown shows it as it is."""
    return _ACTIVE.sub(lambda found: "\\" + found[0], line)


def _visible(char: str) -> str:
    if char.isascii():
        return char if " " <= char <= "~" else " "
    kind = unicodedata.category(char)
    return " " if kind in ("Cc", "Zl", "Zp", "Zs") else "" if kind in _HIDDEN else char
