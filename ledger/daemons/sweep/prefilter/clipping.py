"""Lines of bounded length from texts that may be long and may hold secrets. A text is redacted as a whole before
anything is cut out of it: a piece of a secret would not be known for one."""

from __future__ import annotations

import re

from ledger.client.redaction import Redactor
from ledger.daemons.sweep.prefilter.matching import Hit

LINE_CHARS_MAX = 300
SNIPPET_CHARS_MAX = 600
HEAD_CHARS_MAX = 16 * 1024  # of a text of which only the beginning is shown
EVIDENCE_BEFORE, EVIDENCE_AFTER = 2, 5
OUTPUT_HEAD, OUTPUT_TAIL = 3, 5

_UNPRINTABLE = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]|[^\S ]+|[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)


class Clipper:
    """`redactor` None keeps texts as they are (privacy.redact = false)."""

    def __init__(self, redactor: Redactor | None) -> None:
        self._redactor = redactor
        self._last: tuple[str, str] = ("", "")

    def line(self, text: str, chars_max: int = LINE_CHARS_MAX) -> str:
        """The beginning of a text, as one line."""
        head = text[:HEAD_CHARS_MAX]
        clean = self._redacted(head)
        if len(head) < len(text):
            clean = " ".join(clean.rsplit(None, 1)[:-1])  # the last word may be a part of a secret
        return _bounded(_one_line(clean), chars_max)

    def around(self, text: str, hit: Hit) -> tuple[str, tuple[str, ...]]:
        """The line of a hit, and that line with those around it."""
        clean = self._redacted(text)
        data = text.encode(errors="replace")
        number = data.count(b"\n", 0, hit.start)
        lines = clean.split("\n")
        if len(lines) != data.count(b"\n") + 1:  # a secret of several lines was taken out
            number = next((at for at, line in enumerate(lines) if hit.match in line), 0)
        snippet = _window(lines[min(number, len(lines) - 1)], hit.match)
        first = max(number - EVIDENCE_BEFORE, 0)
        near = lines[first : number + EVIDENCE_AFTER + 1]
        evidence = [shown for line in near if (shown := _window(line, hit.match, LINE_CHARS_MAX))]
        return snippet, tuple(evidence) if len(evidence) > 1 else ()

    def ends(self, text: str) -> tuple[str, ...]:
        """The first and the last lines of an output."""
        lines = [line for line in self._redacted(text).splitlines() if _one_line(line[: 4 * LINE_CHARS_MAX])]
        if len(lines) > OUTPUT_HEAD + OUTPUT_TAIL:
            left_out = len(lines) - OUTPUT_HEAD - OUTPUT_TAIL
            lines = [*lines[:OUTPUT_HEAD], f"… {left_out:,} lines …", *lines[-OUTPUT_TAIL:]]
        return tuple(_bounded(_one_line(line[: 4 * LINE_CHARS_MAX]), LINE_CHARS_MAX) for line in lines)

    def holds_secret(self, text: str) -> bool:
        return self._redacted(text) != text

    def _redacted(self, text: str) -> str:
        if self._redactor is None:
            return text
        if self._last[0] != text:
            self._last = (text, self._redactor.redact(text))
        return self._last[1]


def _one_line(text: str) -> str:
    return " ".join(_UNPRINTABLE.sub(" ", text).split())


def _bounded(text: str, chars_max: int) -> str:
    return text if len(text) <= chars_max else text[: chars_max - 1] + "…"


def _window(line: str, match: str, chars_max: int = SNIPPET_CHARS_MAX) -> str:
    """A line, or the part of a long one that stands around what matched."""
    at = line.find(match[:chars_max])
    if len(line) > chars_max and at > chars_max // 2:
        start = at - chars_max // 4
        return "…" + _bounded(_one_line(line[start : start + 2 * chars_max]), chars_max - 1)
    return _bounded(_one_line(line[: 4 * chars_max]), chars_max)
