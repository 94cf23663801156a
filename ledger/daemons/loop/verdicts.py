"""Reads the verdict out of what the verifier said. What is not beyond doubt is no verdict.

The whole of it must be one JSON object, but for code fences and leading comment lines: an object somewhere in prose
may be one that the verifier quotes. A key given twice is refused, since readers would differ on which one counts.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from projections.loop_state import Verdict

TEXT_BYTES_MAX = 2**20
REASONS_MAX, REASON_CHARS_MAX = 50, 2000

_FENCE = re.compile(r"\s*(?:```|~~~)[\w+-]*\s*")
_COMMENT = re.compile(r"\s*(?:#|//)")


class Unreadable(ValueError):
    """Why there is no verdict, in words for people."""


def read_verdict(text: str) -> Verdict:
    """Raises Unreadable."""
    try:
        said = json.loads(_bare(text), object_pairs_hook=_object, parse_constant=_refuse_constant)
    except Unreadable:
        raise
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"it is no JSON object ({str(error).partition(':')[0]})") from error
    if not isinstance(said, dict):
        raise Unreadable("it is no JSON object")
    if "pass" not in said:
        raise Unreadable("it has no `pass`")
    if not isinstance(said["pass"], bool):
        raise Unreadable(f"`pass` is {_shown(said['pass'])}, not true or false")
    return Verdict(said["pass"], _score(said.get("score")), _reasons(said.get("reasons")))


def _bare(text: str) -> str:
    """Without code fences, and without the comment lines that stand before the object."""
    lines = [line for line in text.removeprefix("\ufeff").split("\n") if not _FENCE.fullmatch(line)]
    while lines and (not lines[0].strip() or _COMMENT.match(lines[0])):
        del lines[0]
    if not lines:
        raise Unreadable("it said nothing")
    return "\n".join(lines)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Unreadable("it gives a key twice")
    return found


def _refuse_constant(name: str) -> None:
    raise Unreadable(f"it holds {name}, which is no number")


def _score(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unreadable(f"`score` is {_shown(value)}, not a number")
    try:
        score = float(value)
    except OverflowError:
        score = math.inf
    if not math.isfinite(score):
        raise Unreadable("`score` is not a finite number")
    return score


def _reasons(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise Unreadable("`reasons` is no list of texts")
    return tuple(one[:REASON_CHARS_MAX] for one in value[:REASONS_MAX])


def _shown(value: object) -> str:
    return json.dumps(value)[:60]
