"""Trends: GET /trends draws them, GET /trends/NAME.csv gives what a plot is drawn of."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

import msgspec
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from ledger import prices
from ledger.errors import InvalidField, NotFound
from ledger.http import plots, rendering
from ledger.http.auth import READER, require
from ledger.http.pages import page
from ledger.http.plots import Series
from ledger.http.read import optional_number
from ledger.http.services import Services, services
from ledger.store.base import DeliveryTotals
from projections import trend_views
from projections.trends import Trends

DAYS, DAYS_OFFERED = 30, (7, 30, 90, 365)
ROWS_DRAWN_MAX = 8

Json = dict[str, Any]
Rows = list[list[Any]]

_DURATIONS_S = (10, 60, 600, 3_600, 2 * 3_600, 6 * 3_600, 12 * 3_600, *(86_400 * days for days in (1, 2, 4, 10, 30)))
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Plot(msgspec.Struct, frozen=True):
    """A plot as the page shows it. `legend` are (class, words)."""

    name: str
    title: str
    note: str
    drawing: Markup
    legend: Sequence[tuple[str, str]] = ()


@page
async def trends_page(request: Request, at: Services, me: dict[str, str]) -> str:
    days = _days(request, at)
    behind = sum(there - here for there, here in zip(await at.store.heads(), at.trends.reached, strict=True))
    totals, names = await at.store.delivery_totals(), await _project_names(at)

    def drawn() -> str:
        plots = _plots(at.trends.state, days, totals, names)
        return rendering.trends_page(
            plots, me, now=at.clock(), days=len(days), offered=DAYS_OFFERED, behind=max(0, behind)
        )

    return await asyncio.to_thread(drawn)  # a year of many models takes a while, in which others must be served


async def trends_csv(request: Request) -> Response:
    at = services(request)
    require(await at.access.caller(request), READER)
    name = request.path_params["name"]
    if name not in NAMES:
        raise NotFound(f"there is no plot {name!r}", hint=f"There are {', '.join(NAMES)}.")
    days = _days(request, at)
    if name == "deliveries":
        head, rows = _deliveries_table(await at.store.delivery_totals())
    else:
        head, rows = await asyncio.to_thread(TABLES[name], at.trends.state, days)
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return Response(csv_text(head, rows), media_type="text/csv", headers=headers)


def csv_text(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """RFC 4180. A text that a spreadsheet would take for a formula gets a ' in front; null is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(head)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip(" ").startswith(_FORMULA):
        return f"'{value}"
    return value


def _days(request: Request, at: Services) -> list[str]:
    wanted = optional_number(request, "days", 1) or DAYS
    if wanted > DAYS_OFFERED[-1]:
        raise InvalidField("days", f"{wanted} is more than {DAYS_OFFERED[-1]}")
    return trend_views.days_until(at.clock(), wanted)


def _spending(state: Trends, days: Sequence[str]) -> list[Json]:
    return [prices.priced(row) for row in trend_views.spending(state, days)]


async def _project_names(at: Services) -> dict[str, str]:
    projects = (await at.reader.catalog()).projects
    return {id_: project.title for id_, project in projects.items() if project.title}


# Plots


def _plots(
    state: Trends, days: Sequence[str], totals: Sequence[DeliveryTotals], project_names: dict[str, str]
) -> list[Plot]:
    daily = trend_views.daily(state, days)
    labels = [_label(day) for day in days]
    return [
        _sessions(daily, labels),
        _cost(_spending(state, days), project_names),
        _time_to_done(daily, labels),
        _deliveries(totals),
        _week(trend_views.week(state, days)),
    ]


def _sessions(daily: Sequence[Json], labels: Sequence[str]) -> Plot:
    series = [
        Series("sessions", "s0", [day["sessions"] for day in daily]),
        Series("failed attempts", "failed", [day["failed"] for day in daily]),
    ]
    sessions, failed = (sum(day[name] for day in daily) for name in ("sessions", "failed"))
    title = "Sessions and failures per day"
    drawing = plots.columns("sessions", title, labels, series, _count)
    note = f"{sessions:,} sessions were opened, {failed:,} attempts failed."
    return Plot("sessions", title, note, drawing, _legend(series))


def _cost(spent: Sequence[Json], project_names: dict[str, str]) -> Plot:
    sums: dict[str, dict[str, float]] = {}
    for row in spent:
        of_project = sums.setdefault(row["project_id"], {})
        of_project[row["model"]] = of_project.get(row["model"], 0) + (row["cost_usd"] or 0)
    projects = sorted(sums, key=lambda project: -sum(sums[project].values()))
    models = _dearest(sums.values())
    labels = [project_names.get(id_, id_) or "No project" for id_ in projects[:ROWS_DRAWN_MAX]]
    series = [
        Series(model or "model not named", f"s{n}", [sums[project].get(model, 0) for project in projects])
        for n, model in enumerate(models[: plots.SERIES_MAX - 1])
    ]
    rest = [sum(sums[project].get(model, 0) for model in models[plots.SERIES_MAX - 1 :]) for project in projects]
    if any(rest):
        series.append(Series("other models", f"s{plots.SERIES_MAX - 1}", rest))
    title = "Cost per project and model"
    drawing = plots.rows("cost", title, labels, series, _dollars)
    return Plot("cost", title, _cost_note(spent, len(projects)), drawing, _legend(series))


def _dearest(sums: Any) -> list[str]:
    by_model: dict[str, float] = {}
    for of_project in sums:
        for model, cost in of_project.items():
            by_model[model] = by_model.get(model, 0) + cost
    return sorted((model for model, cost in by_model.items() if cost), key=lambda model: -by_model[model])


def _cost_note(spent: Sequence[Json], projects: int) -> str:
    whole = sum(row["cost_usd"] or 0 for row in spent)
    parts = [f"{_dollars(whole)} in all."]
    if any(row["cost_estimated"] for row in spent):
        parts.append("Where no cost was reported, it is computed by list prices.")
    unpriced = sorted({model or "one that was not named" for row in spent for model in row["unpriced_models"]})
    if unpriced:
        more = f" and {len(unpriced) - 3} more" if len(unpriced) > 3 else ""
        parts.append(f"No price is known for {', '.join(unpriced[:3])}{more}.")
    if projects > ROWS_DRAWN_MAX:
        parts.append(f"{projects - ROWS_DRAWN_MAX} further projects are in the CSV.")
    return " ".join(parts)


def _time_to_done(daily: Sequence[Json], labels: Sequence[str]) -> Plot:
    half = Series("half within", "s0", [day["half_within_s"] for day in daily])
    most = Series("nine tenths within", "s0 thin", [day["most_within_s"] for day in daily])
    title = "Time to done"
    drawing = plots.spans("time-to-done", title, labels, half, most, _duration, _DURATIONS_S)
    done = sum(day["done"] for day in daily)
    note = f"{done:,} attempts are done. From the first session to the result, to within a tenth."
    legend = [("s0", "half were done within"), ("s0 thin", "up to nine tenths")]
    return Plot("time-to-done", title, note, drawing, legend)


def _deliveries(totals: Sequence[DeliveryTotals]) -> Plot:
    shown = sorted(totals, key=lambda one: -(one.events + one.duplicates + one.conflicts))[:ROWS_DRAWN_MAX]
    series = [
        Series("events stored", "s0", [one.events for one in shown]),
        Series("came again", "s1", [one.duplicates for one in shown]),
        Series("in conflict", "failed", [one.conflicts for one in shown]),
    ]
    events, again = sum(one.events for one in totals), sum(one.duplicates for one in totals)
    note = f"By saddle, since the ledger began: {events:,} events stored, {again:,} came again and changed nothing."
    title = "Deliveries against duplicates"
    drawing = plots.rows("deliveries", title, [one.saddle for one in shown], series, _count)
    return Plot("deliveries", title, note, drawing, _legend(series))


def _week(cells: Sequence[Sequence[int]]) -> Plot:
    title = "The week"
    drawing = plots.heat("week", title, trend_views.WEEKDAYS, cells, lambda count: f"{count:,.0f} events")
    return Plot("week", title, "Events of sessions by weekday and hour, UTC.", drawing)


def _legend(series: Sequence[Series]) -> list[tuple[str, str]]:
    return [(one.look, one.name) for one in series]


# Tables


def _sessions_table(state: Trends, days: Sequence[str]) -> tuple[list[str], Rows]:
    head = ["day", "sessions", "done", "failed", "cancelled"]
    return head, [[day[name] for name in head] for day in trend_views.daily(state, days)]


def _cost_table(state: Trends, days: Sequence[str]) -> tuple[list[str], Rows]:
    tokens = ["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"]
    head = ["day", "project_id", "model", *tokens, "cost_usd", "cost_estimated"]
    return head, [[row[name] for name in head] for row in _spending(state, days)]


def _time_to_done_table(state: Trends, days: Sequence[str]) -> tuple[list[str], Rows]:
    head = ["day", "done", "half_within_s", "most_within_s"]
    return head, [[day[name] for name in head] for day in trend_views.daily(state, days)]


def _week_table(state: Trends, days: Sequence[str]) -> tuple[list[str], Rows]:
    named = zip(trend_views.WEEKDAYS, trend_views.week(state, days), strict=True)
    return ["weekday", "hour", "events"], [[day, hour, n] for day, row in named for hour, n in enumerate(row)]


def _deliveries_table(totals: Sequence[DeliveryTotals]) -> tuple[list[str], Rows]:
    """Counted since the ledger began: the store keeps no days of them."""
    return list(DeliveryTotals.__struct_fields__), [list(msgspec.structs.astuple(one)) for one in totals]


TABLES: dict[str, Callable[[Trends, Sequence[str]], tuple[list[str], Rows]]] = {
    "sessions": _sessions_table,
    "cost": _cost_table,
    "time-to-done": _time_to_done_table,
    "week": _week_table,
}
NAMES = (*TABLES, "deliveries")


# Words for numbers


def _label(day: str) -> str:
    when = date.fromisoformat(day)
    return f"{when.day} {when:%b}"


def _count(number: float) -> str:
    for unit, size in (("M", 1e6), ("k", 1e4)):
        if number >= size:
            return f"{number / (1e6 if unit == 'M' else 1e3):.1f}{unit}".replace(".0", "")
    return f"{number:,.0f}" if number == int(number) else f"{number:g}"


def _dollars(amount: float) -> str:
    return f"$ {amount:,.2f}" if amount >= 0.005 or amount == 0 else "under $ 0.01"


def _duration(seconds: float) -> str:
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}".replace(".0 ", " ")
    return f"{seconds:.0f} s"
