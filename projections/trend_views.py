"""What the trends say of a stretch of days. Plain lists and dicts, ready for JSON, CSV and plots."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

from ledger.events import kinds
from ledger.events.times import format_instant
from projections.trends import Day, Trends, quantile_s
from projections.usage import usage_item

HOURS = 24
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def days_until(now: int, count: int) -> list[str]:
    """The dates of the last `count` days (UTC), today's the last; `now` in ns."""
    today = date.fromisoformat(format_instant(now)[:10])
    return [(today - timedelta(days=before)).isoformat() for before in range(count - 1, -1, -1)]


def daily(trends: Trends, days: Sequence[str]) -> list[dict[str, Any]]:
    """Each day: sessions opened, attempts ended by how they did, and the durations within which half and nine tenths
    of those that are done were done (seconds, null on a day without any)."""
    return [_day_item(day, trends.days.get(day) or Day()) for day in days]


def spending(trends: Trends, days: Sequence[str]) -> list[dict[str, Any]]:
    """Usage by day, project and model; only those that were used. Costs as in `projections.usage.usage_item`."""
    return [
        {"day": day, "project_id": project_id, "model": model, **usage_item(totals)}
        for day in days
        for (project_id, model), totals in sorted((trends.days.get(day) or Day()).spent.items())
    ]


def week(trends: Trends, days: Sequence[str]) -> list[list[int]]:
    """The events of sessions by weekday (Monday first) and hour of UTC."""
    sums = [[0] * HOURS for _ in WEEKDAYS]
    for day in days:
        row = sums[date.fromisoformat(day).weekday()]
        for hour, count in enumerate((trends.days.get(day) or Day()).hours):
            row[hour] += count
    return sums


def _day_item(name: str, day: Day) -> dict[str, Any]:
    return {
        "day": name,
        "sessions": day.sessions,
        **{state: day.ended.get(state, 0) for state in (kinds.DONE, kinds.FAILED, kinds.CANCELLED)},
        "half_within_s": _rounded(quantile_s(day.to_done, 0.5)),
        "most_within_s": _rounded(quantile_s(day.to_done, 0.9)),
    }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
