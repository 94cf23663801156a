"""How incidents go from week to week, as plots: what happened, by severity; and what could not be scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from ledger.http import plots
from ledger.http.plots import Series
from ledger.http.trends import Plot
from projections.incidents import HIGH, LOW, MEDIUM, SEVERITIES
from projections.incidents_views import AGAIN

Json = Mapping[str, Any]

_LOOKS = {HIGH: "failed", MEDIUM: "s1", LOW: "s0", AGAIN: "s5"}


def trend_plots(trend: Sequence[Json]) -> list[Plot]:
    """`trend` as `projections.incidents_views` has it."""
    labels = [_label(each["week"]) for each in trend]
    happened = [
        Series("met again" if look == AGAIN else look, _LOOKS[look], [each[look] for each in trend])
        for look in (*SEVERITIES, AGAIN)
    ]
    unscored = [
        Series("sessions not scored", "s1", [each["unscored"] for each in trend]),
        Series("failed sweeps", "failed", [each["failed"] for each in trend]),
    ]
    looked_at = sum(each["looked_at"] for each in trend)
    return [
        _plot("incidents-trend", "Incidents per week", "By the day on which they happened.", labels, happened),
        _plot(
            "unscored-trend",
            "What could not be scored, per week",
            f"{looked_at:,} sessions were scored. Each sweep counts anew.",
            labels,
            unscored,
        ),
    ]


def _plot(name: str, title: str, note: str, labels: Sequence[str], series: Sequence[Series]) -> Plot:
    drawing = plots.columns(name, title, labels, series, lambda count: f"{count:,.0f}")
    return Plot(name, title, note, drawing, [(one.look, one.name) for one in series])


def _label(week: str) -> str:
    monday = date.fromisoformat(week)
    return f"{monday.day} {monday:%b}"
