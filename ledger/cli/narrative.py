"""A goal or a task for a person at a terminal, from the JSON of the API."""

from __future__ import annotations

from textwrap import indent
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ledger.cli.output import console, moment, paragraph, print_table, status
from ledger.cli.terminal import one_line

NARROW_COLUMNS = 76  # below, a row's text stands under its time and kind, not beside them

_Json = dict[str, Any]


def print_heading(what: str, thing: _Json) -> None:
    """What it is, how it stands, what it is doing, and why it stands still."""
    out = console()
    title = Text(f"{what} {one_line(thing['id'])}  ", style="bold")
    out.print(title.append_text(status(thing["status"])))
    out.print(Text(one_line(thing["title"])))
    out.print(Text(" · ".join(_belongs_to(thing)), style="dim"))
    if thing["summary"]:
        out.print(_indented(paragraph(thing["summary"]), out))
    if thing["current_command"]:
        since = moment(thing["current_since"])
        out.print(Text(f"now: {one_line(thing['current_command'])} (since {since})"))
    for block in thing["blocks"]:
        out.print(Text(f"blocked: {one_line(block['reason'])}", style="yellow"))


def print_story(thing: _Json) -> None:
    """The narrative's rows, oldest first; times in UTC."""
    out = console()
    out.print(Text("\nWhat happened (UTC)", style="bold"))
    if thing["older"] is not None:
        out.print(Text("older rows are left out", style="dim"))
    rows = [(Text(moment(row["at"]), style="dim"), status(row["kind"]), _text(row)) for row in thing["events"]]
    if out.is_terminal and out.width < NARROW_COLUMNS:
        for at, kind, text in rows:
            out.print(Text.assemble(at, "  ", kind))
            out.print(_indented(text, out))
    else:
        print_table(["at", "kind", "what"], rows)


def print_facts(thing: _Json) -> None:
    """What it cost, how its events came in, and which decisions are open to it."""
    out = console()
    out.print()
    out.print(Text(_usage(thing["usage"])))
    counts = (f"{count} {name}" for name, count in thing["integrity"].items() if isinstance(count, int))
    out.print(Text(f"integrity: {', '.join(counts)}"))
    if thing["actions"]:
        out.print(Text(f"open to it: {', '.join(thing['actions'])}"))


def _belongs_to(thing: _Json) -> list[str]:
    names = {"project_id": "project", "goal_id": "goal", "run_task_id": "run by task", "branch_name": "branch"}
    return [f"{name} {one_line(thing[key])}" for key, name in names.items() if thing.get(key)]


def _indented(text: Text, out: Console) -> Padding | Text:
    """Two columns in; folded to a terminal's width, and never in a pipe."""
    if out.is_terminal:
        return Padding(text, (0, 0, 0, 2), expand=False)
    return Text(indent(text.plain, "  "))


def _text(row: _Json) -> Text:
    text = paragraph(row["text"])
    if row["copies"] > 1:
        text.append(f" × {row['copies']}", style="dim")
    return text


def _usage(usage: _Json) -> str:
    parts = [
        f"{usage[f'{key}_tokens']:,} {name}"
        for key, name in (
            ("input", "in"),
            ("output", "out"),
            ("cache_read", "read from cache"),
            ("cache_write", "written to cache"),
        )
    ]
    tokens = f"tokens: {', '.join(parts)}"
    cost = usage["cost_usd"]
    return tokens if cost is None else f"{tokens}; ${cost:,.2f}"
