"""Changes to files as people read them: what an edit changed, line by line, and diffs that a tool put out."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from markupsafe import Markup, escape

from ledger.http.agent_text import plain

LINES_COMPARED_MAX = 400  # of each side; comparing takes the square of it
_CHARS_COMPARED_MAX = 40_000

_HUNK = re.compile(r"^@@ .*@@|^\*\*\* (?:Begin Patch|Update File|Add File|Delete File)|^diff --git ", re.MULTILINE)
_SIDES = (("old_string", "new_string"), ("old_str", "new_str"), ("old_text", "new_text"), ("oldText", "newText"))
_CLASSES = {"+": "add", "-": "del", "@": "hunk"}


def edit_of(args: object) -> str:
    """What the arguments of an editing tool change, as the body of a unified diff; empty if they edit nothing.

    The names are those of the tools of Claude Code (Edit, MultiEdit), Codex (apply_patch), opencode and Gemini CLI
    (replace).
    """
    if not isinstance(args, Mapping):
        return ""
    patch = next((args[name] for name in ("patch", "input", "diff") if isinstance(args.get(name), str)), "")
    if is_diff(patch):
        return str(patch)
    edits = args.get("edits")
    parts = [args, *(edits if isinstance(edits, list) else [])]
    return "\n".join(filter(None, map(_change, parts)))


def is_diff(text: str) -> bool:
    """True for a text in unified diff format, or in that of `apply_patch`."""
    return _HUNK.search(text) is not None and any(line.startswith(("+", "-")) for line in text.splitlines())


def drawn(text: str) -> Markup:
    """A diff escaped, with `<span class="add">`, `del` or `hunk` around lines of one kind."""
    parts = []
    for kind, lines in groupby(plain(text).split("\n"), key=_class_of):
        said = escape("\n".join(lines))
        parts.append(f'<span class="{kind}">{said}</span>' if kind else str(said))
    return Markup("\n".join(parts))  # noqa: S704 – the classes are ours, the rest was escaped


def _class_of(line: str) -> str:
    if line.startswith(("+++ ", "--- ", "diff --git ", "*** ")):
        return "hunk"
    return _CLASSES.get(line[:1], "")


def _change(part: Any) -> str:
    if not isinstance(part, Mapping):
        return ""
    for before, after in _SIDES:
        old, new = part.get(before), part.get(after)
        if isinstance(old, str) and isinstance(new, str):
            return "\n".join(_lines(old, new))
    return ""


def _lines(old: str, new: str) -> Iterator[str]:
    before, after = old.splitlines(), new.splitlines()
    small = len(before) + len(after) <= 2 * LINES_COMPARED_MAX and len(old) + len(new) <= _CHARS_COMPARED_MAX
    if small:
        yield from list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]
    else:
        yield from (f"-{line}" for line in before)
        yield from (f"+{line}" for line in after)
