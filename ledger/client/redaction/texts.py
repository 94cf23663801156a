"""Takes what rules find out of one text.

Colours (ANSI) and escapes of JSON within JSON (`\\u002d`) may stand in the middle of a secret. Rules are shown the
text without them; what they find goes from the text as it is.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from ledger.client.redaction.rules import Rule, Span, rules
from ledger.client.redaction.screening import lowered, suspects
from ledger.client.redaction.shapes import REDACTED

_ESCAPE = r"(?:\x1b|\\{1,8}u001[bB]|\\{1,8}x1[bB]|\\{1,8}033|\\{1,8}e(?=\[[0-9;]{0,20}m))"
_UNSEEN_SIGNS = ("\x1b", "\\u00", "\\x1", "\\033", "\\e[")
_UNSEEN = re.compile(
    rf"{_ESCAPE}(?:\[[0-9;:?]{{0,40}}[ -/]{{0,4}}[@-~]|\][^\x07\x1b]{{0,500}}(?:\x07|\x1b\\)|[()][A-Z0-9])"
    r"|\\{1,8}u00(?P<code>[2-7][0-9A-Fa-f])"
)


def clean(text: str, further: Sequence[re.Pattern[str]] = ()) -> str:
    """The text without secrets; the same object where there are none."""
    mask = suspects([text.encode(errors="surrogatepass")]).get(0, 0)
    return clean_by(mask, text, further) if mask or further else text


def clean_by(mask: int, text: str, further: Sequence[re.Pattern[str]] = ()) -> str:
    """As `clean`, looking only for what the rules of the mask find; for all of a negative one."""
    spans = [match.span() for pattern in further for match in pattern.finditer(text)]
    if mask:
        spans += _found(mask, text)
    spans = sorted(span for span in spans if span[0] < span[1])
    if not spans:
        return text
    pieces, end = [], 0
    for start, stop in _united(spans):
        pieces += [text[end:start], REDACTED]
        end = stop
    whole = "".join([*pieces, text[end:]])
    return text if whole == text else whole


def _found(mask: int, text: str) -> Iterator[Span]:
    """The spans of what the rules of the mask find."""
    if mask >= 0:
        return _spans(mask, text)
    if not any(sign in text for sign in _UNSEEN_SIGNS):
        return _spans_in(text)
    spans: list[Span] = []
    for colour in ("", "\x1b"):  # one may stand within a secret, and in front of one, where it ends a word
        seen = _Seen(text, colour)
        spans += map(seen.place, _spans_in(seen.text))
    return iter(spans)


def _spans_in(seen: str) -> Iterator[Span]:
    return _spans(suspects([seen.encode(errors="surrogatepass")], is_seen=True).get(0, 0), seen)


def _spans(mask: int, text: str) -> Iterator[Span]:
    if not mask:
        return
    folded = lowered(text)
    for number, rule in enumerate(rules()):
        if mask >> number & 1 and _is_near(rule, text, folded):
            yield from rule.spans(text, folded)


def _is_near(rule: Rule, text: str, folded: str) -> bool:
    return not rule.near or any(near in folded for near in rule.near)


def _united(spans: list[Span]) -> Iterator[Span]:
    """Sorted spans, those that overlap as one."""
    start, end = spans[0]
    for span in spans[1:]:
        if span[0] < end:
            end = max(end, span[1])
        else:
            yield start, end
            start, end = span
    yield start, end


class _Seen:
    """What a text shows: with `colour` for each colour, and with escaped characters as themselves."""

    def __init__(self, text: str, colour: str) -> None:
        pieces: list[str] = []
        self._seen: list[int] = [0]  # where stretches begin that are the same in both
        self._real: list[int] = [0]
        size = end = 0
        for unseen in _UNSEEN.finditer(text):
            shown = chr(int(unseen["code"], 16)) if unseen["code"] else colour
            pieces += [text[end : unseen.start()], shown]
            size += unseen.start() - end
            for seen, real in ((size, unseen.start()), (size + len(shown), unseen.end())):
                self._seen.append(seen)
                self._real.append(real)
            size += len(shown)
            end = unseen.end()
        self.text = "".join([*pieces, text[end:]])

    def place(self, span: Span) -> Span:
        """Where a span of what is shown lies in the text."""
        return self._place(span[0]), self._place(span[1] - 1, behind=True)

    def _place(self, at: int, *, behind: bool = False) -> int:
        number = bisect_right(self._seen, at) - 1
        inside = at - self._seen[number]
        if behind and number + 1 < len(self._seen) and self._seen[number + 1] == at + 1:
            return self._real[number + 1]
        return self._real[number] + inside + behind
