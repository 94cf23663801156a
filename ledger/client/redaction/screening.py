"""Says which rules may find something in which of many texts, without looking closely: what is never wrong is that
a rule finds nothing where it is not named.

Hyperscan reads all texts once for everything, at the speed of memory. Where it is not installed, and for the first
texts of a process, which would be read before it is ready, Python's own `re` does the same, a rule at a time. What is
then found is the same: a screen only saves work.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import Any

from ledger.client.redaction.rules import TOKENS, Rule, finds, rules
from ledger.client.redaction.shapes import RUN

Screen = Callable[[bytes], Iterator[tuple[int, int]]]
"""Gives (rule, offset) pairs: the rule may find something in the text that holds the byte before the offset. A rule
of -1 means that any may: the text has escapes or colours, and is to be read before it can be judged."""

ODD = -1
WORTH_LOADING_BYTES = 1 << 16  # what Python screens in the time that Hyperscan takes to be loaded
WORTH_COMPILING_BYTES = 1 << 20  # the same for compiling its database, where none has been kept

_ODD = ("\\u", "\\/", "\x1b", "\\x1b", "\\x1B", "\\033", "\\e[")
_RUN = re.compile(RUN)

_screened_bytes = 0


def suspects(texts: Sequence[bytes], *, is_seen: bool = False) -> dict[int, int]:
    """The numbers of the texts in which something may be found, with the rules that may find it, a bit for each;
    all bits where any rule may. The texts are in UTF-8, plain or as JSON; where `is_seen` they hold no more escapes
    than rules know."""
    found: dict[int, int] = {}
    joined = b"\n".join(texts)
    starts: list[int] | None = None
    for rule, offset in _screen_for(len(joined))(joined):
        if rule == ODD and is_seen:
            continue
        if starts is None:
            starts = list(accumulate((len(text) + 1 for text in texts), initial=0))
        number = bisect_right(starts, offset - 1) - 1
        found[number] = found.get(number, 0) | (-1 if rule == ODD else 1 << rule)
    return found


def _screen_for(size: int) -> Screen:
    global _screened_bytes
    _screened_bytes += size
    if _screened_bytes < WORTH_LOADING_BYTES:
        return screen_in_python
    return screen_in_hyperscan(_screened_bytes >= WORTH_COMPILING_BYTES) or screen_in_python


def screen_in_python(joined: bytes) -> Iterator[tuple[int, int]]:
    text = joined.decode("latin-1")  # a character for each byte: what is looked for is ASCII
    folded = joined.lower().decode("latin-1")
    yield from ((ODD, at + 1) for at in finds(text, _ODD))
    for number, (rule, needs) in enumerate(_needs()):
        searched = folded if rule.folds else text
        if rule.needs is TOKENS:
            yield from ((number, at + 1) for at in _runs_with(needs, text))
        else:
            yield from ((number, at + 1) for at in finds(searched, rule.near) if needs.match(searched, at))


def _runs_with(needs: re.Pattern[str], text: str) -> Iterator[int]:
    """Where runs of a token's characters begin that hold what tokens need. Most runs come again and again."""
    if needs.search("\n".join(set(_RUN.findall(text)))):
        yield from (run.start() for run in _RUN.finditer(text) if needs.search(text, *run.span()))


@cache
def _needs() -> list[tuple[Rule, re.Pattern[str]]]:
    return [(rule, re.compile("|".join(rule.needs), re.ASCII)) for rule in rules()]


@cache
def screen_in_hyperscan(may_compile: bool = True) -> Screen | None:
    """None where Hyperscan is not installed or does not work on this machine, or where its database would have to be
    compiled and may not."""
    from ledger.client.redaction import database  # not every process reads that much

    odd = len(rules())
    needs = [(number, _for_hyperscan(one), rule.folds) for number, rule in enumerate(rules()) for one in rule.needs]
    needs += [(odd, re.escape(sign), False) for sign in _ODD]
    folder = database.cache_folder()
    try:
        ready = database.load(needs, folder)
        if ready is None and may_compile:
            ready = database.compiled(needs, folder)
    except ImportError:
        return None
    if ready is None:
        return None

    def screen(joined: bytes) -> Iterator[tuple[int, int]]:
        hits: list[tuple[int, int]] = []

        def hit(number: int, start: int, end: int, flags: int, context: Any) -> None:
            hits.append((ODD if number == odd else number, end))

        ready.scan(joined, match_event_handler=hit)
        return iter(hits)

    return screen


def _for_hyperscan(needs: str) -> str:
    """The same or less: what must stand before is matched with it, all else that looks around is left out, and so are
    long counts, which take long to compile."""
    needs = re.sub(r"\(\?<=(\[[^\]]*\]\{\d+\})\)", r"\1", needs)
    needs = re.sub(r"\(\?<?[!=](?:[^()\\[]|\\.|\[(?:[^\]\\]|\\.)*\])*\)", "", needs)
    needs = re.sub(r"(\{\d+,?\d*\}|[*+])\+", r"\1", needs)
    needs = re.sub(r"\{(\d+),\d{2,}\}", r"{\1,}", needs).replace("{0,}", "*")
    return re.sub(r"\{(\d+),?\}$", lambda count: f"{{{min(int(count[1]), 8)}}}", needs)


def lowered(text: str) -> str:
    """With the letters of ASCII in lower case, as the patterns are, and all else as it is."""
    if text.isascii():
        return text.lower()
    return text.encode(errors="surrogatepass").lower().decode(errors="surrogatepass")
