from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import click

from ledger.cli.terminal import plain
from ledger.hooks.receiving import AGENTS, receive

_AFTERWARDS = {"codex": "Codex runs new hooks once you have reviewed them: type /hooks in it."}


@click.group("hook")
def command() -> None:
    """Tell a ledger what an agent does, by the hooks that the agent offers.

    `install` writes the hooks into the agent's settings; the agent then runs `ledgerd hook AGENT` at every step. That
    takes its input, returns at once, prints nothing and exits with 0 whatever happens; a process in the background
    sends it to the server that LEDGERD_URL and LEDGERD_TOKEN name. What goes wrong is noted beside the outbox, in
    the file `outbox.db.hooks.log`.

    \b
    Example:
      ledgerd hook install claude-code --dry-run
      ledgerd hook install claude-code
    """


def _receiver(agent: str) -> click.Command:
    @click.argument("notification", nargs=-1, type=click.UNPROCESSED)
    def run(notification: tuple[str, ...]) -> None:
        receive(agent, list(notification))

    run.__doc__ = f"""Take what a hook of {agent} is given, on standard input. Not to be called by people.

    \b
    Example:
      echo '{{"session_id": "s1", "hook_event_name": "SessionStart"}}' | ledgerd hook {agent}
    """
    return click.command(agent, context_settings={"ignore_unknown_options": True})(run)


for _agent in AGENTS:
    command.add_command(_receiver(_agent))


def _settings_options(function: Callable[..., None]) -> Callable[..., None]:
    function = click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")(function)
    function = click.option(
        "--settings",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="PATH",
        help="The file to edit; by default your own settings of the agent.",
    )(function)
    return click.argument("agent", type=click.Choice(AGENTS))(function)


@command.command("install")
@_settings_options
def install(agent: str, settings: Path | None, dry_run: bool) -> None:
    """Write the hooks into the settings of AGENT. Everything else there stays as it is; installing again changes
    nothing, or the path of a ledgerd that has moved.

    \b
    Example:
      ledgerd hook install claude-code --settings .claude/settings.local.json
    """
    from ledger.hooks.installing import installed, read, settings_path

    path = settings or settings_path(agent, os.environ)
    before = read(path)
    changed = _change(path, before, installed(before, agent, _ledgerd(), path), dry_run)
    if changed and agent in _AFTERWARDS:
        click.echo(_AFTERWARDS[agent])


@command.command("uninstall")
@_settings_options
def uninstall(agent: str, settings: Path | None, dry_run: bool) -> None:
    """Take our hooks, and nothing else, out of the settings of AGENT.

    \b
    Example:
      ledgerd hook uninstall claude-code
    """
    from ledger.hooks.installing import read, settings_path, uninstalled

    path = settings or settings_path(agent, os.environ)
    before = read(path)
    _change(path, before, uninstalled(before, agent, path), dry_run)


def _change(path: Path, before: str, after: str, dry_run: bool) -> bool:
    """Writes the settings, or shows the difference; whether they were written."""
    from ledger.hooks.installing import write

    if after == before:
        click.echo(f"{path}: nothing to change")
        return False
    if dry_run:
        lines = difflib.unified_diff(
            before.splitlines(), after.splitlines(), str(path), f"{path} (new)", lineterm="", n=3
        )
        click.echo(plain("\n".join(lines)))
        return False
    write(path, after)
    click.echo(f"{path}: changed")
    return True


def _ledgerd() -> list[str]:
    """How this very ledgerd is called from anywhere: an agent may have another PATH."""
    called = Path(sys.argv[0])
    if called.name == "ledgerd" and called.is_absolute() and called.exists():
        return [str(called)]
    beside = Path(sys.executable).with_name("ledgerd")
    return [str(beside)] if beside.exists() else [sys.executable, "-P", "-m", "ledger.cli"]
