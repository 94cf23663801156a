"""What a reply decides: the last line `PREFIX_SUPERVISION {json}` or `PREFIX_SELF_REPAIR {json}` in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from projections.remediation import words
from projections.remediation.plan import Rules

SUPERVISION, SELF_REPAIR = "SUPERVISION", "SELF_REPAIR"

_POINT = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+\S", re.MULTILINE)
_DECISIONS = (words.APPROVE, words.CORRECT, words.BLOCK)


class Verdict(msgspec.Struct, frozen=True):
    """What the master decided. `findings` is how many things it wants mended."""

    decision: str
    feedback: str
    findings: int


class RepairVerdict(msgspec.Struct, frozen=True):
    decision: str
    feedback: str
    prompt_addendum: str


class NoVerdict(msgspec.Struct, frozen=True):
    """`why` goes on after "the reply": "holds no line …"."""

    why: str


def supervision(text: str, rules: Rules) -> Verdict | NoVerdict:
    said = _last_line(text, f"{rules.prefix}_{SUPERVISION}")
    if isinstance(said, NoVerdict):
        return said
    decision, feedback = said.get("decision"), _text(said, "feedback", rules.feedback_chars_max)
    if decision not in _DECISIONS:
        return NoVerdict(f"holds no decision of {', '.join(_DECISIONS)}")
    if isinstance(feedback, NoVerdict):
        return feedback
    if decision != words.APPROVE and not feedback:
        return NoVerdict(f"says {decision} without feedback")
    return Verdict(decision, feedback, 0 if decision == words.APPROVE else _findings(said, feedback))


def self_repair(text: str, rules: Rules) -> RepairVerdict | NoVerdict:
    """An addendum counts only where the repair is done."""
    said = _last_line(text, f"{rules.prefix}_{SELF_REPAIR}")
    if isinstance(said, NoVerdict):
        return said
    decision = said.get("decision")
    feedback = _text(said, "feedback", rules.feedback_chars_max)
    addendum = _text(said, "prompt_addendum", rules.addendum_chars_max)
    if decision not in (words.FIXED, words.ASKS_USER):
        return NoVerdict(f"holds no decision of {words.FIXED}, {words.ASKS_USER}")
    for one in (feedback, addendum):
        if isinstance(one, NoVerdict):
            return one
    assert isinstance(feedback, str) and isinstance(addendum, str)  # noqa: S101, PT018 — looked at above
    if decision == words.ASKS_USER and not feedback:
        return NoVerdict(f"says {decision} without feedback")
    return RepairVerdict(decision, feedback, addendum if decision == words.FIXED else "")


def _last_line(text: str, marker: str) -> Mapping[str, Any] | NoVerdict:
    """The JSON object of the last line that is such a line; it alone counts, whatever stands in earlier ones."""
    for line in reversed(text.split("\n")):
        rest = line.strip().removeprefix(marker)
        if rest == line.strip() or not rest.lstrip().startswith("{"):
            continue
        try:
            value = msgspec.json.decode(rest)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            return NoVerdict(f"ends in a line {marker} whose JSON is broken")
        return value if isinstance(value, dict) else NoVerdict(f"ends in a line {marker} without an object")
    return NoVerdict(f"holds no line {marker} {{json}}")


def _text(said: Mapping[str, Any], name: str, chars_max: int) -> str | NoVerdict:
    value = said.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        return NoVerdict(f"holds a {name} that is no text")
    if len(value) > chars_max:
        return NoVerdict(f"holds a {name} of {len(value)} characters; at most {chars_max} are taken")
    return value.strip()


def _findings(said: Mapping[str, Any], feedback: str) -> int:
    """As many as the verdict says (`findings`, a number or a list), else the points of its feedback, at least one."""
    told = said.get("findings")
    if isinstance(told, list):
        return max(1, len(told))
    if isinstance(told, int) and not isinstance(told, bool) and 0 < told < 10_000:
        return told
    return max(1, len(_POINT.findall(feedback)))
