"""`index.json`: what the register holds, for programs. Generated: nothing that is written there by hand stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ledger.daemons.sweep.register.incidents_file import Entry
from projections.incidents import SEVERITIES

VERSION = 1


class Row(msgspec.Struct, frozen=True):
    """`first_seen` is the day on which the register first had it; `category` is empty for what a person wrote."""

    fingerprint: str
    title: str
    date: str
    severity: str
    first_seen: str
    category: str = ""
    times: int = 1


class Index(msgspec.Struct, frozen=True):
    version: int
    title: str
    counts: dict[str, int]
    incidents: list[Row]


class Fact(msgspec.Struct, frozen=True):
    """What the sweep's journal knows of an incident beside the file."""

    first_seen: str
    category: str
    times: int = 1


def index(
    title: str, entries: Sequence[Entry], facts: Mapping[str, Fact], before: bytes | None, *, today: str
) -> bytes:
    """The index of these entries. `facts` are by fingerprint; of what is not among them, the index `before` may know
    when it was first seen, else that is today."""
    seen_before = {row.fingerprint: row for row in _rows(before)}
    rows: dict[str, Row] = {}
    for entry in entries:
        fact, old = facts.get(entry.fingerprint), seen_before.get(entry.fingerprint)
        if fact is None:
            fact = Fact(old.first_seen, old.category, old.times) if old is not None else Fact(today, "")
        first_seen = min(filter(None, [fact.first_seen, old.first_seen if old is not None else ""]), default="")
        row = Row(entry.fingerprint, entry.title, entry.date, entry.severity, first_seen, fact.category, fact.times)
        rows.setdefault(entry.fingerprint, row)
    counts = {severity: sum(row.severity == severity for row in rows.values()) for severity in SEVERITIES}
    whole = Index(VERSION, title, {"total": len(rows), **counts}, list(rows.values()))
    return msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n"


def _rows(data: bytes | None) -> list[Row]:
    """The rows of an index; none where it is no index: it is generated, so nothing is lost."""
    try:
        return msgspec.json.decode(data or b"", type=Index).incidents
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return []
