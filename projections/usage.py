"""Tokens and cost, counted once per message.

Agents repeat the usage of a message for each of its blocks, a fork repeats its parent's history, and churn repeats
everything. So reports are kept by message id within the root (without one: by task and seq), and of all reports of
an id the one with the highest seq counts; at the same seq, the one of the session that was opened first.

What a report says it cost is added up. Where it names no cost, its tokens are kept by model, for whoever knows
prices: prices change, and a fold may not.
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
_MODEL_CHARS_MAX = 200


class Tokens(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What one model was given and gave. `input` leaves out what was read from the cache or written to it."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def plus(self, other: Tokens, sign: int = 1) -> Tokens:
        return Tokens(
            self.input + sign * other.input,
            self.output + sign * other.output,
            self.cache_read + sign * other.cache_read,
            self.cache_write + sign * other.cache_write,
        )


class Totals(msgspec.Struct, frozen=True, gc=False):
    """Sums over reports. `cost_reports` counts those that named a cost; `unpriced` are the tokens of the others, by
    model (empty where none was named)."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_nano_usd: int = 0
    cost_reports: int = 0
    unpriced: Map[str, Tokens] = Map()

    def plus(self, other: Totals, sign: int = 1) -> Totals:
        return Totals(
            self.input_tokens + sign * other.input_tokens,
            self.output_tokens + sign * other.output_tokens,
            self.cache_read_tokens + sign * other.cache_read_tokens,
            self.cache_write_tokens + sign * other.cache_write_tokens,
            self.cost_nano_usd + sign * other.cost_nano_usd,
            self.cost_reports + sign * other.cost_reports,
            _added(self.unpriced, other.unpriced, sign),
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


def evolve(usage: Usage, event: Recorded, rank: int, model: str | None) -> Usage:
    """With a `usage` event; `rank` is the position at which its session was opened, `model` the one that the session
    was opened with."""
    if event.task_id is None:
        return usage
    payload = payload_object(event.payload)
    counted = totals(model_of(payload, model), *reported(payload))
    report = Report(event.seq, rank, event.session_id, event.task_id, counted)
    key = key_of(payload, event)
    before = usage.reports.get(key)
    if before is not None:
        if (before.seq, -before.rank) >= (report.seq, -report.rank):
            return usage
        usage = _counted(usage, before, -1)
    return msgspec.structs.replace(_counted(usage, report, 1), reports=usage.reports.set(key, report))


def usage_item(sums: Totals | None) -> dict[str, Any]:
    """Totals ready for JSON; `cost_usd` is what was reported, null where no report named a cost, and `unpriced` the
    tokens by model of reports that named none."""
    sums = Totals() if sums is None else sums
    return {
        "input_tokens": sums.input_tokens,
        "output_tokens": sums.output_tokens,
        "cache_read_tokens": sums.cache_read_tokens,
        "cache_write_tokens": sums.cache_write_tokens,
        "cost_usd": sums.cost_nano_usd / NANO if sums.cost_reports else None,
        "unpriced": {model: msgspec.structs.asdict(one) for model, one in sorted(sums.unpriced.items())},
    }


def key_of(payload: Mapping[str, Any], event: Recorded) -> str:
    """What a report is of, within its root: all reports of one key are one."""
    message_id = payload.get("message_id")
    if isinstance(message_id, str) and message_id:
        return f"message {message_id}"
    return f"seq {event.seq} {event.task_id}"


def model_of(payload: Mapping[str, Any], session_model: str | None) -> str:
    model = payload.get("model")
    return (model if isinstance(model, str) and model else session_model or "")[:_MODEL_CHARS_MAX]


def reported(payload: Mapping[str, Any]) -> tuple[Tokens, int | None]:
    """What one report says: the tokens, and the cost in billionths of a dollar if it names one."""
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    return Tokens(*(_tokens(payload.get(name)) for name in names)), _cost_nano_usd(payload.get("cost_usd"))


def totals(model: str, tokens: Tokens, cost_nano_usd: int | None) -> Totals:
    """The sums over one report."""
    counts = (tokens.input, tokens.output, tokens.cache_read, tokens.cache_write)
    if cost_nano_usd is not None:
        return Totals(*counts, cost_nano_usd, 1)
    return Totals(*counts, unpriced=Map({model: tokens}) if any(counts) else Map())


def _counted(usage: Usage, report: Report, sign: int) -> Usage:
    def with_report(map_: Map[str, Totals], key: str) -> Map[str, Totals]:
        return map_.set(key, map_.get(key, Totals()).plus(report.totals, sign))

    return Usage(
        usage.reports,
        with_report(usage.sessions, report.session_id),
        with_report(usage.tasks, report.task_id),
        usage.whole.plus(report.totals, sign),
    )


def _added(mine: Map[str, Tokens], others: Map[str, Tokens], sign: int) -> Map[str, Tokens]:
    for model, tokens in others.items():
        sum_ = mine.get(model, Tokens()).plus(tokens, sign)
        mine = mine.delete(model) if sum_ == Tokens() else mine.set(model, sum_)
    return mine


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
