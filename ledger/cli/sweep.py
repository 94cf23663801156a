from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ledger.cli import Failure
from ledger.cli.output import json_option, print_json
from ledger.cli.settings import current_settings
from ledger.cli.terminal import plain

if TYPE_CHECKING:
    from ledger.daemons.agent.stopping import Stop
    from ledger.daemons.sweep.config import Config
    from ledger.daemons.sweep.runner import Parts

FAILED = 1
READER_TOKEN = "LEDGERD_READER_TOKEN"  # noqa: S105 — for the source `ledger`, where LEDGERD_TOKEN is a saddle's


class UsageFailure(Failure):
    exit_code = 2


class LockedFailure(Failure):
    exit_code = 3


@click.group("sweep")
@click.option(
    "-c",
    "--config",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The configuration; by default LEDGERD_SWEEP_CONFIG, else ledgerd/sweep.toml in the configuration folder.",
)
@click.pass_context
def command(ctx: click.Context, file: Path | None) -> None:
    """Read agents' transcripts, have a model judge what looks like damage, keep a register of incidents.

    Exit codes: 0 fine, 1 failed, 2 usage or configuration, 3 another run is under way.

    \b
    Example:
      ledgerd sweep init --git
      ledgerd sweep scan --show
      ledgerd sweep run
    """
    ctx.meta[__name__] = file


@command.command("run")
@click.option("--dry-run", is_flag=True, help="Only look: no model, no lock, no file, no event, no hook.")
@click.option("--with-judge", is_flag=True, help="With --dry-run: ask the model too, and still write nothing.")
@json_option
def run_command(dry_run: bool, with_judge: bool, as_json: bool) -> None:
    """Sweep once: look at what is new, have it judged, file what is an incident.

    \b
    Example:
      ledgerd sweep run --dry-run --with-judge
      ledgerd sweep -c sweep.toml run
    """
    if with_judge and not dry_run:
        raise click.UsageError("--with-judge is for --dry-run; a run asks the judge anyway")
    from ledger.daemons.sweep import rehearsing, runner

    with _exit_codes(), _stopping() as stop, _parts(stop) as parts:
        _refuse_no_source(parts)
        if dry_run:
            _show_rehearsed(rehearsing.rehearse(parts, with_judge=with_judge), as_json)
            return
        ended = runner.run(parts)
        if as_json:
            print_json(_ended_json(ended))
        else:
            click.echo(plain("\n".join(ended.lines())), err=not ended.is_good)
            if ended.hint:
                click.echo(f"hint: {plain(ended.hint)}", err=True)
        if not ended.is_good:
            sys.exit(FAILED)


@command.command("scan")
@click.option("--show", is_flag=True, help="Show every candidate, and the rule that fired.")
@click.option("--all", "whole", is_flag=True, help="Look at what was seen before, too.")
@json_option
def scan_command(show: bool, whole: bool, as_json: bool) -> None:
    """Show what the prefilter finds in the sessions that are new. Asks no model and changes nothing.

    \b
    Example:
      ledgerd sweep scan --show
      ledgerd sweep scan --all --json
    """
    from ledger.daemons.sweep import rehearsing

    with _exit_codes(), _stopping() as stop, _parts(stop) as parts:
        _refuse_no_source(parts)
        scanned, _ = rehearsing.look(parts, whole=whole)
        _show_scanned(scanned, show=show, as_json=as_json)
        if scanned.failed:
            sys.exit(FAILED)


@command.command("init")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), required=False)
@click.option("--git", is_flag=True, help="Make the register's folder a git repository.")
def init_command(folder: Path | None, git: bool) -> None:
    """Write a configuration, and make a register in FOLDER (by default in the data folder). Overwrites nothing.

    \b
    Example:
      ledgerd sweep -c sweep.toml init --git incidents
    """
    from ledger.daemons.sweep import founding

    with _exit_codes():
        config = founding.found(_file(), folder, git=git)
        click.echo(f"{config.file}: the configuration\n{config.folder}: the register")
        click.echo("next: ledgerd sweep run takes what is there as the baseline, or scan --all --show looks at it")


@command.command("reindex")
@json_option
def reindex_command(as_json: bool) -> None:
    """Sort incidents.md anew after edits by hand, and write index.json anew.

    \b
    Example:
      ledgerd sweep reindex
    """
    from ledger.daemons.sweep.journal import read_state
    from ledger.daemons.sweep.locking import locked

    with _exit_codes(), _parts(None) as parts, locked(parts.config.lock, parts.guard):
        registers = read_state(parts.config.state).registers
        done = parts.register.reindex(registers, parts.today().isoformat())
        if as_json:
            written = [str(path) for path in done.written]
            print_json({"counts": done.counts, "written": written, "odd": [_odd(one) for one in done.odd]})
            return
        click.echo(", ".join(f"{count} {name}" for name, count in done.counts.items()))
        click.echo("\n".join(f"written: {path}" for path in done.written) or "nothing had to change")
        for one in done.odd:
            click.echo(f"line {one.line} is read as no incident: {plain(one.heading)}", err=True)


@command.command("config")
@json_option
def config_command(as_json: bool) -> None:
    """Print what is in force, and every path that a run writes.

    \b
    Example:
      ledgerd sweep config
    """
    from ledger.daemons.sweep import showing_config

    with _exit_codes():
        config = _config()
        _checked_patterns(config)
        if as_json:
            print_json(
                {**showing_config.in_force(config), "writes": [str(path) for path in showing_config.writes(config)]}
            )
        else:
            click.echo(plain("\n".join(showing_config.lines(config))))


@command.command("install")
@click.option("--crontab", is_flag=True, help="Print a line for a crontab instead of writing a systemd timer.")
@click.option("--at", default="04:30", show_default=True, metavar="HH:MM", help="When to run, every day.")
@click.option("--dry-run", is_flag=True, help="Print the units and write nothing.")
def install_command(crontab: bool, at: str, dry_run: bool) -> None:
    """Make a run happen every day: write a timer for the systemd of this user, or print a line for a crontab.

    \b
    Example:
      ledgerd sweep install --at 05:15
      (crontab -l; ledgerd sweep install --crontab) | crontab -
    """
    from ledger.daemons.sweep import installing

    with _exit_codes():
        config = _config()
        if crontab:
            click.echo(installing.crontab_line(config, _ourselves(), at))
            return
        units = installing.units(config, _ourselves(), at)
        if dry_run:
            for unit in units:
                click.echo(f"# {unit.path}\n{unit.text}")
            return
        installing.write(units)
        for unit in units:
            click.echo(f"written: {unit.path}")
        click.echo(f"next: systemctl --user daemon-reload && systemctl --user enable --now {units[-1].path.name}")


def _file() -> Path:
    from ledger.daemons.sweep.config import config_path

    return config_path(click.get_current_context().meta.get(__name__))


def _config() -> Config:
    from ledger.daemons.sweep.config import load

    return load(_file())


def _checked_patterns(config: Config) -> None:
    """Raises InvalidConfig for patterns that the prefilter cannot use."""
    from ledger.daemons.sweep.assembling import prefilter_of

    prefilter_of(config, None)


def _refuse_no_source(parts: Parts) -> None:
    """A sweep that looks at nothing would call everything quiet."""
    from ledger.daemons.sweep.config import InvalidConfig

    if not parts.sources:
        raise InvalidConfig(f"{parts.config.file}: source: there is none")


@contextmanager
def _exit_codes() -> Iterator[None]:
    """Turns errors of the configuration into exit code 2, and a lock that is held into 3."""
    from ledger.daemons.sweep.config import InvalidConfig
    from ledger.daemons.sweep.founding import AlreadyThere
    from ledger.daemons.sweep.locking import SweepLocked
    from ledger.errors import InvalidField

    try:
        yield
    except (InvalidConfig, InvalidField, AlreadyThere) as error:
        raise UsageFailure(error) from error
    except SweepLocked as error:
        raise LockedFailure(error) from error


@contextmanager
def _stopping() -> Iterator[Stop]:
    """Signals end what runs, and the run in good order."""
    from ledger.daemons.agent.stopping import stopping_on_signals

    with stopping_on_signals() as stop:
        yield stop


@contextmanager
def _parts(stop: Stop | None) -> Iterator[Parts]:
    """All parts of a run, put together with the server that the settings name."""
    from ledger.client.api import Api, server_from_environment
    from ledger.client.redaction.database import keeping_nothing
    from ledger.client.saddle import Saddle
    from ledger.daemons.sweep.assembling import assembled

    settings = current_settings()
    found_url, found_token = server_from_environment()
    url, token = settings.url or found_url, settings.token or found_token
    has_server = bool(settings.url or token)

    with ExitStack() as held, keeping_nothing():

        def connect(named: str | None) -> tuple[str, Api]:
            api = held.enter_context(Api(named or url, os.environ.get(READER_TOKEN) or token))
            return api.url, api

        def open_saddle(outbox: Path, bytes_max: int) -> Saddle:
            return Saddle(url, token, outbox=outbox, drain=has_server, bytes_max=bytes_max)

        yield assembled(_config(), connect=connect, open_saddle=open_saddle, sends=has_server, say=_say, stop=stop)


def _say(text: str) -> None:
    click.echo(plain(text), err=True)


def _ourselves() -> list[str]:
    """The command line by which this `ledgerd` is run."""
    script = shutil.which("ledgerd", path=str(Path(sys.executable).parent))
    return [script] if script else [sys.executable, "-m", "ledger.cli"]


def _show_rehearsed(rehearsed: Any, as_json: bool) -> None:
    import msgspec

    if as_json:
        plan = None if rehearsed.plan is None else msgspec.to_builtins(rehearsed.plan)
        print_json({"headline": rehearsed.headline, "counts": rehearsed.scanned.counts, "plan": plan})
        return
    filed = rehearsed.plan.filed if rehearsed.plan is not None else ()
    lines = [rehearsed.headline, *(f"{one.severity} {one.date} {one.title}" for one in filed), *rehearsed.notes]
    click.echo(plain("\n".join(lines)))


def _show_scanned(scanned: Any, *, show: bool, as_json: bool) -> None:
    import msgspec

    from ledger.daemons.sweep import ending, showing

    sessions: Sequence[Any] = [*scanned.chosen, *scanned.deferred]
    if as_json:
        print_json({"counts": scanned.counts, "sessions": [msgspec.to_builtins(one) for one in sessions]})
        return
    click.echo(ending.looked_at(scanned))
    for note in ending.notes_of(scanned):
        click.echo(plain(note), err=True)
    if show:
        for line in showing.shown(sessions):
            click.echo(line)


def _ended_json(ended: Any) -> dict[str, Any]:
    return {
        "status": ended.status,
        "headline": ended.headline,
        "filed": [{"title": one.title, "severity": one.severity, "date": one.date} for one in ended.filed],
        "notes": list(ended.notes),
        "counts": dict(ended.counts),
        "report": None if ended.report is None else str(ended.report),
    }


def _odd(one: Any) -> dict[str, Any]:
    return {"line": one.line, "heading": one.heading}
