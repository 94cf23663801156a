"""Reports as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tests.bench.machine import Machine
from tests.bench.results import Finding, Ratio, Report, Row, Spread

_HEADINGS = ("events/s", "min – max", "req/s", "CPU s/M", "peak MiB", "p50 ms", "p99 ms", "pushers")


def show(console: Console, machine: Machine, reports: Iterable[Report]) -> None:
    """Prints them. "CPU s/M" is per million events; "pushers" is the share of a core that the pushers needed."""
    console.print(
        f"{machine.cores} cores, load {machine.load:.1f}, a durable write takes {machine.sync_ms:.2f} ms;"
        f" Python {machine.python}, SQLite {machine.sqlite}"
    )
    for report in reports:
        console.print(_rows(report))
        console.print(_ratios(report.ratios))
        if report.findings:
            console.print(_findings(report.findings))


def _rows(report: Report) -> Table:
    table = _table(f"{report.title}; medians of {report.rounds} rounds")
    table.add_column("", no_wrap=True)
    for heading in _HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in report.rows:
        table.add_row(row.name, *_cells(row))
    return table


def _cells(row: Row) -> list[str]:
    return [
        f"{row.events_per_s.median:,.0f}",
        f"{row.events_per_s.min / 1000:,.1f}k – {row.events_per_s.max / 1000:,.1f}k",
        f"{row.requests_per_s.median:,.0f}",
        f"{row.cpu_s_per_million_events:.0f}",
        _number(row.peak_mib, ".0f"),
        _number(row.latency_p50_ms, ".1f"),
        _number(row.latency_p99_ms, ".1f"),
        _number(row.pushers_busy, ".0%"),
    ]


def _ratios(ratios: Iterable[Ratio]) -> Table:
    table = _table("Ratios of requests per second, round by round")
    for heading in ("", "median (min – max)", "aim"):
        table.add_column(heading)
    for ratio in ratios:
        table.add_row(ratio.name, _spread(ratio.value, ".2f"), _aim(ratio))
    return table


def _findings(findings: Iterable[Finding]) -> Table:
    table = _table("What was found, and what was taken for it")
    for heading in ("", "there", "found", "recall", "look-alikes", "taken", "precision", "aim"):
        table.add_column(heading, justify="left" if heading in ("", "aim") else "right")
    for one in findings:
        recall = one.recall
        aim = "" if one.aim is None or recall is None else _met(recall >= one.aim, one.aim)
        counts = (one.there, one.found, _number(recall, ".3f"), one.others, one.wrongly_found)
        table.add_row(one.kind, *map(str, counts), _number(one.precision, ".3f"), aim)
    return table


def _aim(ratio: Ratio) -> str:
    if ratio.aim is None:
        return ""
    return _met(ratio.value.median >= ratio.aim, ratio.aim)


def _met(is_met: bool, aim: float) -> str:
    return f"at least {aim:.3g}: " + ("[green]met[/]" if is_met else "[red]missed[/]")


def _spread(spread: Spread, form: str) -> str:
    return f"{spread.median:{form}} ({spread.min:{form}} – {spread.max:{form}})"


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=SIMPLE_HEAD)


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else f"{value:{form}}"
