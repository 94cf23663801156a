"""Rules, and many patterns searched at once, in linear time (RE2): no pattern can hang, ours or a configured one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import re2  # type: ignore[import-untyped]  # it ships no types

from ledger.errors import InvalidField

MEMORY_BYTES_MAX = 64 * 2**20  # of one automaton; it is built as it is needed
PATTERN_CHARS_MAX = 1_000
MATCH_BYTES_MAX = 300
MOST = 12


class Rule(msgspec.Struct, frozen=True):
    """`name` is what a candidate is listed by, `why` what it means, as a sentence; `kind`, `rank` as in `model`.
    `most` says how many different ones there may be in a session."""

    name: str
    kind: str
    rank: int
    why: str
    most: int = MOST


class Hit(NamedTuple):
    """Where a rule fired: what matched, and where its line begins and ends in the text as UTF-8 (bytes)."""

    rule: Rule
    match: str
    start: int
    end: int


class Patterns:
    """Rules with the pattern that each is found by. Patterns are RE2's: no look-around and no back references; `^`
    and `$` are the ends of lines. Case counts unless a pattern begins with `(?i)`."""

    def __init__(self, rules: Iterable[tuple[Rule, str]]) -> None:
        self._rules = [(rule, _compiled(f"(?m:{pattern})")) for rule, pattern in rules]
        self._set = re2.Set.SearchSet(_options())
        for _, pattern in self._rules:
            self._set.Add(pattern.pattern)
        if self._rules:
            self._set.Compile()

    def hits(self, text: str) -> Iterator[Hit]:
        """The first hit of each rule that fires, in the order of the rules."""
        data = text.encode(errors="replace")
        for index in sorted(self._set.Match(data) or ()) if self._rules else ():
            rule, pattern = self._rules[index]
            if (match := pattern.search(data)) is not None:
                yield _hit(rule, data, *match.span())

    def first(self, text: str) -> Rule | None:
        hit = next(self.hits(text), None)
        return None if hit is None else hit.rule


def configured(field: str, patterns: Iterable[str], rule: Rule) -> list[tuple[Rule, str]]:
    """Patterns of a configuration, each for `rule`. Raises InvalidField, which names the place in `field`."""
    found = []
    for number, pattern in enumerate(patterns):
        if not pattern or len(pattern) > PATTERN_CHARS_MAX:
            raise InvalidField(f"{field}[{number}]", f"has no text, or more than {PATTERN_CHARS_MAX:,} characters")
        try:
            _compiled(pattern)
        except re2.error as error:
            why = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
            hint = "Patterns are RE2's (github.com/google/re2/wiki/Syntax): as in Python, without look-around."
            raise InvalidField(f"{field}[{number}]", f"{pattern!r} is no pattern: {why}", hint=hint) from error
        found.append((rule, pattern))
    return found


def table(
    kind: str,
    rank: int,
    rules: Mapping[str, tuple[str, tuple[str, ...]]],
    *,
    fold: bool = False,
    most: int = MOST,
) -> list[tuple[Rule, str]]:
    """`{name: (why, alternatives)}` as rules of one kind and rank. `fold`: upper and lower case are the same."""
    flag = "(?i)" if fold else ""
    return [(Rule(name, kind, rank, why, most), flag + "|".join(parts)) for name, (why, parts) in rules.items()]


def _compiled(pattern: str) -> Any:
    return re2.compile(pattern, _options())


def _options() -> Any:
    options = re2.Options()
    options.max_mem = MEMORY_BYTES_MAX
    options.log_errors = False
    return options


def _hit(rule: Rule, data: bytes, start: int, end: int) -> Hit:
    last = data.find(b"\n", end)
    match = data[start : min(end, start + MATCH_BYTES_MAX)].decode(errors="replace")
    return Hit(rule, match, data.rfind(b"\n", 0, start) + 1, len(data) if last < 0 else last)
