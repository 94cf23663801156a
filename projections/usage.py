"""Tokens and cost, counted once per message.

Agents repeat the usage of a message for each of its blocks, a fork repeats its parent's history, and churn repeats
everything. So reports are kept by message id within the root (without one: by task and seq), and of all reports of
an id the one with the highest seq counts; at the same seq, the one of the session that was opened first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from immutables import Map

from ledger.events.content import payload_object
from ledger.events.model import Recorded

NANO = 10**9  # cost is kept in billionths of a dollar: whole numbers add up the same in any order

_TOKENS_MAX = 2**40
_COST_USD_MAX = 10**6


class Totals(msgspec.Struct, frozen=True, gc=False):
    """Sums over reports. `cost_reports` counts those that named a cost."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_nano_usd: int = 0
    cost_reports: int = 0

    def plus(self, other: Totals, sign: int = 1) -> Totals:
        return Totals(
            self.input_tokens + sign * other.input_tokens,
            self.output_tokens + sign * other.output_tokens,
            self.cache_read_tokens + sign * other.cache_read_tokens,
            self.cache_write_tokens + sign * other.cache_write_tokens,
            self.cost_nano_usd + sign * other.cost_nano_usd,
            self.cost_reports + sign * other.cost_reports,
        )


class Report(msgspec.Struct, frozen=True, gc=False):
    """`rank` is the position at which its session was opened."""

    seq: int
    rank: int
    session_id: str
    task_id: str
    totals: Totals


class Usage(msgspec.Struct, frozen=True):
    reports: Map[str, Report] = Map()
    sessions: Map[str, Totals] = Map()
    tasks: Map[str, Totals] = Map()
    whole: Totals = Totals()


def evolve(usage: Usage, event: Recorded, rank: int) -> Usage:
    """With a `usage` event; `rank` is the position at which its session was opened."""
    if event.task_id is None:
        return usage
    payload = payload_object(event.payload)
    report = Report(event.seq, rank, event.session_id, event.task_id, _totals(payload))
    key = _key(payload, event)
    before = usage.reports.get(key)
    if before is not None:
        if (before.seq, -before.rank) >= (report.seq, -report.rank):
            return usage
        usage = _counted(usage, before, -1)
    return msgspec.structs.replace(_counted(usage, report, 1), reports=usage.reports.set(key, report))


def usage_item(totals: Totals | None) -> dict[str, Any]:
    """Totals ready for JSON; `cost_usd` is null where no report named a cost."""
    totals = Totals() if totals is None else totals
    return {
        "input_tokens": totals.input_tokens,
        "output_tokens": totals.output_tokens,
        "cache_read_tokens": totals.cache_read_tokens,
        "cache_write_tokens": totals.cache_write_tokens,
        "cost_usd": totals.cost_nano_usd / NANO if totals.cost_reports else None,
    }


def _counted(usage: Usage, report: Report, sign: int) -> Usage:
    def with_report(map_: Map[str, Totals], key: str) -> Map[str, Totals]:
        return map_.set(key, map_.get(key, Totals()).plus(report.totals, sign))

    return Usage(
        usage.reports,
        with_report(usage.sessions, report.session_id),
        with_report(usage.tasks, report.task_id),
        usage.whole.plus(report.totals, sign),
    )


def _key(payload: Mapping[str, Any], event: Recorded) -> str:
    message_id = payload.get("message_id")
    if isinstance(message_id, str) and message_id:
        return f"message {message_id}"
    return f"seq {event.seq} {event.task_id}"


def _totals(payload: Mapping[str, Any]) -> Totals:
    cost_nano_usd = _cost_nano_usd(payload.get("cost_usd"))
    return Totals(
        _tokens(payload.get("input_tokens")),
        _tokens(payload.get("output_tokens")),
        _tokens(payload.get("cache_read_tokens")),
        _tokens(payload.get("cache_write_tokens")),
        cost_nano_usd or 0,
        0 if cost_nano_usd is None else 1,
    )


def _tokens(value: object) -> int:
    """A count as reported; 0 for what cannot be one."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _TOKENS_MAX:
        return 0
    return value


def _cost_nano_usd(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not 0 <= value <= _COST_USD_MAX:  # nor NaN, which compares with nothing
        return None
    return round(value * NANO)
