"""The command `ledgerd`: one file per subcommand, each loaded when it is called, so that starting is fast."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click

from ledger import __version__
from ledger.cli.settings import load_settings
from ledger.cli.terminal import plain
from ledger.errors import LedgerError

# name → (module that exports `command`, its line of help, which stands here so that --help loads no module)
COMMANDS = {
    "serve": ("ledger.cli.serve", "Serve a ledger over HTTP."),
    "demo": ("ledger.cli.demo", "Serve a ledger with a small fleet at work in it."),
    "goals": ("ledger.cli.goals", "List the goals."),
    "goal": ("ledger.cli.goal", "Show what a goal went through."),
    "tasks": ("ledger.cli.tasks", "List the tasks."),
    "task": ("ledger.cli.task", "Show what a task went through."),
    "tail": ("ledger.cli.tail", "Follow the log as it grows."),
    "run": ("ledger.cli.run", "Run a command as a session of a task."),
    "worker": ("ledger.cli.worker", "Ask for queued tasks and run a command for each."),
    "remediate": ("ledger.cli.remediate", "Work a plan through several projects, supervised."),
    "loop": ("ledger.cli.loop", "Work a task in rounds of agents, with brakes and a verifier."),
    "sweep": ("ledger.cli.sweep", "Judge what agents did, and keep a register of incidents."),
    "comment": ("ledger.cli.comment", "Say something to the people who read the ledger."),
    "result": ("ledger.cli.result", "Say how the session at hand stands."),
    "push": ("ledger.cli.push", "Push events from standard input."),
    "hook": ("ledger.cli.hook", "Tell a ledger what an agent does, by the agent's hooks."),
    "outbox": ("ledger.cli.outbox", "Show and send what waits to be sent."),
    "token": ("ledger.cli.token", "Create, list and revoke access tokens."),
    "watch": ("ledger.cli.watch", "Follow the transcripts of the agents on this host."),
    "import": ("ledger.cli.import_", "Bring transcripts or another ledger into a ledger."),
    "export": ("ledger.cli.export", "Write a whole ledger to a file, one JSON object a line."),
    "copy": ("ledger.cli.copy", "Copy a ledger to another store, of whatever kind."),
    "backup": ("ledger.cli.backup", "Write a whole ledger to a file, as it stands at one moment."),
    "restore": ("ledger.cli.restore", "Make a ledger out of a backup."),
    "verify": ("ledger.cli.verify", "Recompute the seals of a ledger."),
    "schema": ("ledger.cli.schema", "Print the SQL that a store is made of."),
    "bundle": ("ledger.cli.bundle", "Replay scenarios against a live server, or record one."),
}

# group → its subcommands that live in modules of their own
NESTED = {"import": {"ledger": "ledger.cli.import_ledger"}}


class Failure(click.ClickException):
    """A LedgerError on its way to standard error; exits with 1."""

    def __init__(self, error: LedgerError) -> None:
        super().__init__(error.detail)
        self.hint = error.hint

    def show(self, file: object = None) -> None:
        click.echo(f"error: {plain(self.message)}", err=True)
        if self.hint:
            click.echo(f"hint: {plain(self.hint)}", err=True)


class LazyGroup(click.Group):
    """Knows its subcommands by name, imports the one called, and turns every LedgerError into one message."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name][0]).command
        if isinstance(command, click.Group):
            for name, module in NESTED.get(cmd_name, {}).items():
                command.add_command(import_module(module).command, name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, help_line) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except LedgerError as error:
            raise Failure(error) from error


@click.command(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Settings come from flags, then LEDGERD_* variables, then ledgerd.toml in this folder.",
)
@click.version_option(__version__, prog_name="ledgerd", message="%(prog)s %(version)s")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A settings file other than ./ledgerd.toml.",
)
@click.pass_context
def main(ctx: click.Context, config: Path | None) -> None:
    """The exactly-once ledger for agent fleets.

    \b
    Example:
      ledgerd serve
      ledgerd goals --status running
    """
    ctx.obj = load_settings(config)
