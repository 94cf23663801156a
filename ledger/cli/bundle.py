from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import SystemRandom

import click

from bundles import plan, recording, replaying
from bundles.faults import VARIANTS
from bundles.rig.deadline import Deadline
from bundles.rig.report import Report
from bundles.rig.wire import LostAnswer, Wire, new_client
from bundles.runner import DEFAULT_STORE, discover, run
from ledger.cli.output import json_option, print_json
from ledger.cli.settings import current_settings
from ledger.client.api import server_from_environment
from ledger.errors import LedgerError

RECORD_S_MAX = 600.0

_UNREACHABLE_HINT = "Start it with `ledgerd serve`, or set LEDGERD_URL to where it listens."

Run = Callable[[], Report]


@click.group("bundle")
def command() -> None:
    """Replay scenarios against a live server, or record one.

    \b
    Example:
      ledgerd bundle run replay
    """


@command.command("run")
@click.argument("what", metavar="[NAME|PATH]", required=False)
@click.option(
    "--store",
    metavar="URL",
    default=DEFAULT_STORE,
    show_default=True,
    help="The store of each run; {folder} is the run's own folder, {run} a name of its own.",
)
@click.option("--seed", type=int, help="Repeats the choices of an earlier run.")
@click.option("--kill", is_flag=True, help="End the server by SIGKILL wherever it is restarted.")
@json_option
def run_command(what: str | None, store: str, seed: int | None, kill: bool, as_json: bool) -> None:
    """Run one scenario, one recorded bundle, or all: each against a server of its own, with a report.

    All scenarios run twice where they restart the server: with a clean stop and with SIGKILL. Exits with 0 if every
    check holds.

    \b
    Example:
      ledgerd bundle run
      ledgerd bundle run crash --seed 7
      ledgerd bundle run goal-7.json --kill
    """
    chosen = list(_chosen(what, _checked(store), SystemRandom().getrandbits(32) if seed is None else seed, kill))
    if len(chosen) > 1 and store == store.format(folder="", run=""):
        raise click.UsageError("several runs need a store each: put {run} into the URL of --store")
    reports = []
    for one in chosen:
        reports.append(one())
        if not as_json:
            click.echo("\n".join(reports[-1].lines()))
    red = [report for report in reports if report.verdict != "ok"]
    if as_json:
        print_json([report.as_json() for report in reports])
    else:
        click.echo(f"{len(reports) - len(red)} of {len(reports)} runs are green")
    if red:
        raise SystemExit(1)


@command.command("record")
@click.argument("goal")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True),
    default="-",
    help="The file; - is standard output.",
)
def record_command(goal: str, output: str) -> None:
    """Write all that led to GOAL, and what it came to, as a bundle that can be replayed.

    \b
    Example:
      ledgerd bundle record 7 -o goal-7.json
      ledgerd bundle run goal-7.json
    """
    settings = current_settings()
    url, token = server_from_environment()
    with new_client() as client:
        wire = Wire(client, lambda: settings.url or url, settings.token or token, Deadline(RECORD_S_MAX))
        try:
            bundle = recording.record(wire, goal)
        except LostAnswer as error:
            raise LedgerError(f"the server does not answer: {error}", hint=_UNREACHABLE_HINT) from error
    with click.open_file(output, "wb") as out:
        out.write(plan.dump(bundle))
    click.echo(f"{len(bundle.steps)} steps of goal {goal} recorded", err=True)


def _chosen(what: str | None, store: str, seed: int, kill: bool) -> Iterator[Run]:
    """The runs that are asked for. Without a name: everything, both ways."""
    named = [entry for entry in discover() if what in (None, entry.name)]
    files = [path for path in replaying.recorded() if what in (None, path.stem)]
    if what is not None and not named and not files:
        if not Path(what).is_file():
            names = [entry.name for entry in discover()] + [path.stem for path in replaying.recorded()]
            raise click.UsageError(f"no scenario and no file {what!r}; there are: {', '.join(names)}")
        files = [Path(what)]
    for entry in named:
        if not kill:
            yield partial(run, entry, store=store, seed=seed)
        if entry.restarts and (kill or what is None):
            yield partial(run, entry, store=store, seed=seed, kill=True)
    for path in files:
        for variant in VARIANTS:
            if variant.kill or not kill:
                yield partial(replaying.replay, path, variant, store=store, seed=seed)


def _checked(store: str) -> str:
    try:
        store.format(folder="", run="")
    except (KeyError, IndexError, ValueError):
        raise click.UsageError("only {folder} and {run} may stand in braces in the URL of --store") from None
    return store
