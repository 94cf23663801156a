"""What the commands share to show things: a console, tables, times, states in colour.

rich is loaded where something is shown with it: to load it takes longer than most commands do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ledger.cli.terminal import one_line, plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

# Colour only where a person has to act, or where something has ended
STYLES = {"failed": "bold red", "waiting": "bold yellow", "suspended": "yellow", "done": "green", "error": "red"}


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--json`: passes `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, as the API gives it.")(command)


def print_json(value: Any) -> None:
    """A value as indented JSON on standard output."""
    click.echo(safe_json(value, indent=2))


def safe_json(value: Any, *, indent: int = -1) -> str:
    """A value as JSON in which everything that a terminal might act upon is escaped; on one line unless indented."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=indent).decode()
    return "".join(char if char == "\n" or char.isprintable() else _escaped(char) for char in text)


def console() -> Console:
    """Standard output. No markup, no guessing of what is a number or a path; nothing is wrapped in a pipe."""
    from rich.console import Console

    out = Console(highlight=False, markup=False, emoji=False)
    out.soft_wrap = not out.is_terminal
    return out


def status(state: str) -> Text:
    """A state, or a row's kind, in the colour of what it says."""
    from rich.text import Text

    return Text(one_line(state), style=STYLES.get(state.rpartition("-")[2], ""))


def moment(instant: str | None) -> str:
    """An RFC 3339 instant as `2026-02-03 04:05:06`, in UTC."""
    if not instant:
        return ""
    try:
        return datetime.fromisoformat(instant).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return one_line(instant)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> None:
    """A table on a terminal, its last column folded; in a pipe one line a row, columns parted by tabs, no heading."""
    out = console()
    if not out.is_terminal:
        for row in rows:
            click.echo("\t".join(one_line(str(cell)) for cell in row))
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns[:-1]:
        table.add_column(column, overflow="fold")
    table.add_column(columns[-1], overflow="fold", ratio=1)
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(one_line(cell)) for cell in row))
    out.print(table)


def paragraph(text: str) -> Text:
    from rich.text import Text

    return Text(plain(text))


@contextmanager
def progress_bar(label: str, total: int | None, *, in_bytes: bool = False) -> Iterator[Callable[[int], None]]:
    """A bar on standard error where that is a terminal, nothing otherwise. Gives the function that is told how far
    things have come; a `total` that is not known is None."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn() if in_bytes else MofNCompleteColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task(label, total=total)
        yield lambda done: bar.update(task, completed=done)


def _escaped(char: str) -> str:
    return "".join(f"\\u{unit:04x}" for unit in _utf16(char))


def _utf16(char: str) -> Iterator[int]:
    data = char.encode("utf-16-be", "surrogatepass")
    return (int.from_bytes(data[index : index + 2]) for index in range(0, len(data), 2))
