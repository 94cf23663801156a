"""Moments of sessions that a sweep's prefilter should take, each with the rule that says so, and look-alikes that it
should pass over. They were written by those who wrote the rules: what is found of them says that nothing has got
worse, not how much of real damage is found.

They lie in `damage.tsv`, one a line: family, rule (`-` for a look-alike) and text, in which `\\n` is the end of a
line and `\\\\` a backslash.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

FAMILIES = COMMAND, AGENT, PERSON, FAILURE, WARNING = "command", "agent", "person", "failure", "warning"

_ESCAPE = re.compile(r"\\(.)")


class Sample(NamedTuple):
    """`rule` is None for a look-alike. `family` says what the text is: a command that is run, what an agent or a
    person says, what a command prints that fails or that does not."""

    family: str
    text: str
    rule: str | None


def samples(family: str, *, damage: bool) -> list[Sample]:
    """Those of a family that are damage, or that only look like it."""
    return [sample for sample in _all() if sample.family == family and (sample.rule is not None) == damage]


@cache
def _all() -> list[Sample]:
    lines = Path(__file__).with_suffix(".tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    return [Sample(family, _unescaped(text), None if rule == "-" else rule) for family, rule, text in rows]


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda escape: "\n" if escape[1] == "n" else escape[1], text)
