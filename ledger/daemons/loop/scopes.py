"""Which files a round may touch: patterns as in .gitignore, relative to the project.

`src/` and `src/**` are all below src, `*.md` any such file at whatever depth, `/docs/*.md` those directly in docs; a
`!` before a pattern takes back what an earlier one allowed, and the last one that fits counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache


def outside(names: Iterable[str], scope: Sequence[str]) -> list[str]:
    """Those of the files that lie outside of the scope; with no scope, none does."""
    return [name for name in names if not is_inside(name, scope)] if scope else []


def is_inside(name: str, scope: Sequence[str]) -> bool:
    """A path that leads out of the project is never inside."""
    if name.startswith(("../", "/")) or name == "..":
        return False
    allowed = False
    for pattern in scope:
        takes_back = pattern.startswith("!")
        if allowed is takes_back and _expression(pattern.removeprefix("!")).fullmatch(name):
            allowed = not takes_back
    return allowed


def is_pattern(text: str) -> bool:
    try:
        _expression(text.removeprefix("!"))
    except re.error:
        return False
    return bool(text.strip("/!"))


@lru_cache(maxsize=1000)
def _expression(pattern: str) -> re.Pattern[str]:
    """A pattern matches a file, or a folder and with it all that is below."""
    anchored = "/" in pattern.rstrip("/")
    only_below = pattern.endswith("/")
    parts = pattern.strip("/").split("/")
    written = "" if anchored else "(?:.*/)?"
    for n, part in enumerate(parts):
        last = n == len(parts) - 1
        if part == "**":
            written += ".*" if last else "(?:.*/)?"
        else:
            written += _part(part) + ("" if last else "/")
    return re.compile(written + ("/.*" if only_below else "(?:/.*)?"), re.DOTALL)


def _part(part: str) -> str:
    """One name between slashes, with its wildcards."""
    written, place = "", 0
    while place < len(part):
        char = part[place]
        end = part.find("]", place + 2) if char == "[" else -1
        if char == "*":
            written += "[^/]*"
        elif char == "?":
            written += "[^/]"
        elif end > 0:
            inside = part[place + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            written += f"(?!/)[{'^' + inside[1:] if inside[0] in '!^' else inside}]"
            place = end
        elif char == "\\" and place + 1 < len(part):
            place += 1
            written += re.escape(part[place])
        else:
            written += re.escape(char)
        place += 1
    return written
