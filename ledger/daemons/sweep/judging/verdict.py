"""Reads what a judge answered. Fences and prose around the JSON are tolerated; anything else that is wrong is said.

What comes out is checked: every text is one redacted line of bounded length, every candidate's number was given out,
every severity and category is one that there is. The judge decides what is an incident, and nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Mapping
from datetime import date
from typing import Any

import msgspec

from ledger.daemons.sweep.judging.prompt import CATEGORIES, Redact
from ledger.daemons.sweep.register.texts import one_line
from ledger.errors import LedgerError
from projections.incidents import SEVERITIES

TITLE_CHARS_MAX = 160
TEXT_CHARS_MAX = 2_000
INCIDENTS_MAX = 100  # with all their texts they fit into one event
IDS_MAX = 1_000
OTHER = "other"

_STARTS_MAX = 200  # places where the JSON may begin, in the prose before it
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NUMBER = re.compile(r"([CE])([0-9]{1,9})", re.IGNORECASE)


class JudgeFailed(LedgerError):
    """There is no verdict. Nothing is recorded of the candidates, so the next run brings them back."""

    code = "judge_failed"
    hint = "Nothing is lost: the same candidates come back. `ledgerd sweep config` shows how the judge is asked."


class Judged(msgspec.Struct, frozen=True):
    """An incident as the judge sees it. `date` is empty where it gave none that can be."""

    title: str
    date: str
    severity: str
    category: str
    what: str
    cost: str
    lesson: str
    candidates: tuple[str, ...]
    why: str = ""


class Excluded(msgspec.Struct, frozen=True):
    """Candidates that are no incident, or one that is there already (`duplicate_of`: its number, E01, or another
    candidate's)."""

    candidates: tuple[str, ...]
    reason: str
    duplicate_of: str = ""


class Rejected(msgspec.Struct, frozen=True):
    """An incident that cannot be filed, and why. Its candidates count as judged."""

    title: str
    why: str
    candidates: tuple[str, ...] = ()


class Verdict(msgspec.Struct, frozen=True):
    """`unmentioned` are the candidates that the judge said nothing of."""

    incidents: tuple[Judged, ...] = ()
    excluded: tuple[Excluded, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    patterns: str = ""
    unmentioned: tuple[str, ...] = ()


def read(
    answer: str, candidates: Mapping[str, object], known: Container[str], redact: Redact, *, today: date
) -> Verdict:
    """The verdict in `answer`; `candidates` and `known` are the numbers that were given out. Raises JudgeFailed where
    there is none."""
    found = _object_in(answer)
    if found is None:
        start = one_line(redact(answer), 200) or "nothing"
        raise JudgeFailed(f"the judge answered no verdict, but: {start}")
    reader = _Reader(candidates, known, redact, today)
    incidents, rejected = reader.incidents(found["incidents"])
    excluded = reader.excluded(found.get("excluded"))
    patterns = reader.text(_joined(found.get("patterns")), TEXT_CHARS_MAX)
    said = (*(one.candidates for one in incidents), *(one.candidates for one in rejected))
    mentioned = {id for ids in (*said, *(one.candidates for one in excluded)) for id in ids}
    return Verdict(incidents, excluded, rejected, patterns, tuple(id for id in candidates if id not in mentioned))


def _object_in(answer: str) -> dict[str, Any] | None:
    """The first JSON object that is a verdict."""
    decoder = json.JSONDecoder()
    at = answer.find("{")
    for _ in range(_STARTS_MAX):
        if at < 0:
            return None
        end = at + 1
        try:
            value, end = decoder.raw_decode(answer, at)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict) and isinstance(value.get("incidents"), list):
            return value
        at = answer.find("{", end)
    return None


class _Reader:
    def __init__(self, candidates: Mapping[str, object], known: Container[str], redact: Redact, today: date) -> None:
        self._candidates = candidates
        self._known = known
        self._redact = redact
        self._today = today

    def incidents(self, rows: list[Any]) -> tuple[tuple[Judged, ...], tuple[Rejected, ...]]:
        judged: list[Judged] = []
        rejected: list[Rejected] = []
        for number, row in enumerate(rows, 1):
            if number > INCIDENTS_MAX:
                rejected.append(Rejected("", f"{len(rows) - INCIDENTS_MAX} more than can be filed at once"))
                break
            one = self._incident(row, number)
            if isinstance(one, Judged):
                judged.append(one)
            else:
                rejected.append(one)
        return tuple(judged), tuple(rejected)

    def excluded(self, rows: object) -> tuple[Excluded, ...]:
        excluded: list[Excluded] = []
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict) and (ids := self._ids(row.get("candidates"))):
                reason = self.text(row.get("reason"), TEXT_CHARS_MAX) or "no reason was given"
                excluded.append(Excluded(ids, reason, self._duplicate(row.get("duplicate_of"))))
        return tuple(excluded[:IDS_MAX])

    def text(self, value: object, chars_max: int) -> str:
        return one_line(self._redact(value), chars_max) if isinstance(value, str) else ""

    def _incident(self, row: Any, number: int) -> Judged | Rejected:
        if not isinstance(row, dict):
            return Rejected("", f"incident {number} is no object")
        title = self.text(row.get("title"), TITLE_CHARS_MAX)
        ids = self._ids(row.get("candidates"))
        texts = {name: self.text(row.get(name), TEXT_CHARS_MAX) for name in ("what", "cost", "lesson")}
        missing = [name for name, text in (("title", title), *texts.items()) if not _says_something(text)]
        if missing:
            return Rejected(title, f"incident {number} has no {', no '.join(missing)}", ids)
        severity = str(row.get("severity")).strip().upper()
        if severity not in SEVERITIES:
            said = self.text(row.get("severity"), 40) or "none"
            return Rejected(title, f"incident {number} has the severity {said}, not {', '.join(SEVERITIES)}", ids)
        category = str(row.get("category")).strip().lower()
        return Judged(
            title,
            self._date(row.get("date")),
            severity,
            category if category in CATEGORIES else OTHER,
            **texts,
            candidates=ids,
            why=self.text(row.get("why"), TEXT_CHARS_MAX),
        )

    def _ids(self, value: object) -> tuple[str, ...]:
        """The numbers that were given out, each once."""
        given = value if isinstance(value, list) else [value]
        ids = (_number(one) for one in given[:IDS_MAX])
        return tuple(dict.fromkeys(id for id in ids if id in self._candidates))

    def _duplicate(self, value: object) -> str:
        id = _number(value)
        return id if id in self._known or id in self._candidates else ""

    def _date(self, value: object) -> str:
        """As it was given, where it is one and not to come."""
        if not isinstance(value, str) or not _DATE.fullmatch(value.strip()):
            return ""
        try:
            day = date.fromisoformat(value.strip())
        except ValueError:
            return ""
        return day.isoformat() if date(2000, 1, 1) <= day <= self._today else ""


def _number(value: object) -> str:
    """A number as it was given out: C1 and c001 are C01."""
    found = _NUMBER.fullmatch(value.strip()) if isinstance(value, str) else None
    return f"{found[1].upper()}{int(found[2]):02}" if found else ""


def _says_something(text: str) -> bool:
    return any(char.isalnum() for char in text)


def _joined(value: object) -> object:
    """Patterns may come as a list of texts."""
    if isinstance(value, list):
        return "; ".join(one for one in value if isinstance(one, str))
    return value
