"""Numbers, times and the state of a fleet, said in words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any
from urllib.parse import quote

Json = Mapping[str, Any]

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def headline(fleet: Json, new_incidents: int = 0) -> str:
    """What a person has to do, in a sentence. `new_incidents` are HIGH, and nobody has acknowledged them."""
    needs, failed = len(fleet["needs_you"]), len(fleet["failed"])
    parts = []
    if needs:
        parts.append(f"{number(needs)} {'thing needs' if needs == 1 else 'things need'} you")
    if failed:
        parts.append(f"{number(failed)} failed")
    if new_incidents:
        parts.append(f"{number(new_incidents)} new HIGH {'incident' if new_incidents == 1 else 'incidents'}")
    if not parts:
        parts.append("nothing needs you")
        if silent := len(fleet["silent"]):
            parts.append(f"{number(silent)} {'is' if silent == 1 else 'are'} silent")
    return capital(", ".join(parts))


def agents_at_work(fleet: Json) -> str:
    """How many sessions work on how many hosts, in a sentence."""
    working = [saddle for saddle in fleet["saddles"] if saddle["working"]]
    agents = sum(saddle["working"] for saddle in working)
    if not agents:
        return "Nobody is at work."
    hosts = len({saddle["host"] or saddle["name"] for saddle in working})
    on = f"{number(hosts)} {'host' if hosts == 1 else 'hosts'}"
    said = "agent is" if agents == 1 else "agents are"
    return f"{capital(number(agents))} {said} at work on {on}."


def number(count: int) -> str:
    """Up to twelve in words."""
    return _NUMBERS[count] if count < len(_NUMBERS) else f"{count:,}"


def duration(seconds: float) -> str:
    """In the two units that say it: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`."""
    if seconds < 10:
        return f"{seconds:.1f} s" if seconds >= 0.05 else "0 s"
    whole = round(seconds)
    for (unit, length), (smaller, part) in pairwise(_UNITS):
        if whole >= length:
            rest = whole % length // part
            return f"{whole // length} {unit} {rest} {smaller}" if rest else f"{whole // length} {unit}"
    return f"{whole} s"


_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def seconds_between(start: str | None, end: str | None) -> float | None:
    """From one RFC 3339 time to another; None if one is missing or cannot be read, or they stand the wrong way
    round."""
    try:
        took = (datetime.fromisoformat(end or "") - datetime.fromisoformat(start or "")).total_seconds()
    except (ValueError, TypeError):  # TypeError: only one of them names its zone
        return None
    return took if took >= 0 else None


def tokens(count: int) -> str:
    """`850 tokens`, `48 k tokens`, `1.2 M tokens`."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if count >= size:
            shown = f"{count / size:.1f}" if count < 10 * size else f"{count // size:,}"
            return f"{shown} {unit} tokens"
    return f"{count} tokens"


def problem(status: int) -> str:
    """What an HTTP status means to somebody at a browser."""
    return _PROBLEMS.get(status, "This did not work" if status < 500 else "Something broke here")


_PROBLEMS = {
    401: "You are not logged in",
    403: "You may not do this",
    404: "There is nothing here",
    405: "This cannot be done here",
    409: "It has moved on meanwhile",
    413: "That was too much",
    429: "Too much at once",
    503: "The ledger cannot answer just now",
}


def in_path(text: str) -> str:
    """An id as one part of an address. A lone surrogate, which no address can hold, is a question mark."""
    return quote(text.encode("utf-8", "replace").decode(), safe="@")


def capital(words: str) -> str:
    return words[:1].upper() + words[1:]
