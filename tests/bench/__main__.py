"""How fast the ledger is on this machine: `python -m tests.bench [PART…] [--json]`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import click
import msgspec
from rich.console import Console

from tests.bench import emit, hook, ingest, pages, postgres, redaction, sweep, transcripts
from tests.bench.machine import machine
from tests.bench.processes import BenchFailed
from tests.bench.results import Report
from tests.bench.tables import show

Part = Callable[[Path, Callable[[str], None]], Report]

_WIDTH = 120  # where there is no terminal that has one

PARTS: dict[str, Part] = {
    "ingest": ingest.run,
    "postgres": postgres.run,
    "emit": emit.run,
    "hook": hook.run,
    "transcripts": transcripts.run,
    "redaction": redaction.run,
    "sweep": sweep.run,
    "pages": pages.run,
}


@click.command()
@click.argument("parts", nargs=-1, type=click.Choice(list(PARTS)))
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def main(parts: tuple[str, ...], as_json: bool) -> None:
    """Measure PARTS of the ledger, or all of them.

    Absolute numbers are of this machine and this minute; the ratios are what can be compared.
    """
    progress = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="ledgerd-bench-") as folder:
        found = machine(Path(folder))
        try:
            with progress.status("starting") as status:
                reports = {name: PARTS[name](Path(folder), status.update) for name in parts or PARTS}
        except BenchFailed as error:
            raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode({"machine": found, "parts": reports})))
    else:
        out = Console()
        show(out if out.is_terminal else Console(width=_WIDTH), found, reports.values())


if __name__ == "__main__":
    main()
