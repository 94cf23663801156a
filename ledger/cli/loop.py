from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ledger.cli.output import json_option, print_json, safe_json
from ledger.cli.settings import current_settings
from ledger.cli.terminal import one_line

if TYPE_CHECKING:
    from ledger.client.saddle import Saddle
    from ledger.daemons.loop.folders import LoopFolder
    from ledger.daemons.loop.ticking import Summary
    from ledger.errors import LedgerError

OUTBOX_BYTES_MAX = 2**30
TEMPLATES = ("blank", "dependency-update", "docs", "test-fixing")


@click.group("loop")
def command() -> None:
    """Work a task in rounds: an implementing agent, a verifying one, an orchestrating one, with brakes.

    \b
    Example:
      ledgerd loop init tests --template test-fixing
      ledgerd loop task tests "Make the test suite pass."
      ledgerd loop run --mode daemon --loop tests
    """


def project_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--project`: passes `project`."""
    return click.option(
        "--project",
        default=".",
        metavar="DIR",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="The project's folder; by default this one.",
    )(command)


@command.command("run")
@click.option(
    "--mode", type=click.Choice(["tick", "daemon"]), default="tick", help="One tick, or one after the other."
)
@click.option("--loop", "name", required=True, metavar="NAME", help="Which loop.")
@project_option
@click.option("--interval", type=click.FloatRange(min=0), metavar="S", help="Seconds between ticks, not loop.json's.")
@click.option("--max-iterations", type=click.IntRange(min=1), metavar="N", help="So many ticks at most, then end.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary of each tick as JSON, one on a line.")
def run(
    mode: str, name: str, project: Path, interval: float | None, max_iterations: int | None, as_json: bool
) -> None:
    """Run a tick, or a daemon that runs one after the other until the loop is halted.

    A tick that is skipped says why. An unknown loop is no failure, so that a scheduler stays quiet. A signal ends the
    agent that runs, and the next tick goes on with the round. A daemon whose first tick went well outlives an error
    of a later one: it says so, and tries again.

    \b
    Example:
      ledgerd loop run --loop tests
      ledgerd loop run --mode daemon --loop tests --interval 60 --json
    """
    from ledger.daemons.agent import stopping_on_signals
    from ledger.daemons.loop.config import read_setup
    from ledger.daemons.loop.running import run_daemon
    from ledger.daemons.loop.ticking import tick

    folder = _folder(project, name)
    tell = _tell_json if as_json else _tell
    with stopping_on_signals() as stop:
        if mode == "tick" or not folder.is_there:
            tell(tick(folder, lambda: _saddle(folder), stop))
            return
        read_setup(folder)  # so that a loop.json that cannot be read leaves nothing behind
        with _saddle(folder) as saddle:
            run_daemon(
                folder,
                lambda: tick(folder, lambda: nullcontext(saddle), stop),
                stop,
                interval_s=interval,
                attempts_max=max_iterations,
                told=tell,
                failed=_tell_error,
            )


@command.command("init")
@click.argument("name", metavar="NAME")
@project_option
@click.option("--template", type=click.Choice(TEMPLATES), default=TEMPLATES[0], help="What to begin with.")
@json_option
def init(name: str, project: Path, template: str, as_json: bool) -> None:
    """Make a loop: loop.json and its prompts, in .ledgerd/loops/NAME.

    \b
    Example:
      ledgerd loop init tests --template test-fixing
    """
    from ledger.daemons.loop import handling

    folder = _folder(project, name)
    written = handling.init(folder, lambda: _saddle(folder), template)
    if as_json:
        print_json({"loop": name, "folder": str(folder.home), "files": written})
        return
    click.echo(f"made {folder.home.relative_to(folder.project)}: {', '.join(written)}")
    click.echo(f"next: ledgerd loop task {name} '…', then ledgerd loop run --loop {name}")


@command.command("task")
@click.argument("name", metavar="NAME")
@click.argument("task", metavar="TASK")
@project_option
def set_task(name: str, task: str, project: Path) -> None:
    """Set what the loop works on.

    \b
    Example:
      ledgerd loop task tests "Make the test suite pass."
    """
    from ledger.daemons.loop import handling

    folder = _folder(project, name)
    handling.set_task(folder, lambda: _saddle(folder), task)
    click.echo(f"{name} works on: {one_line(task)[:200]}")


@command.command("halt")
@click.argument("name", metavar="NAME")
@project_option
@click.option("--reason", default="", metavar="TEXT", help="Why, for those who read it.")
def halt(name: str, project: Path, reason: str) -> None:
    """Halt a loop: an agent that runs goes on to its end, and no other is started.

    \b
    Example:
      ledgerd loop halt tests --reason "the release is out today"
    """
    from ledger.daemons.loop import handling

    folder = _folder(project, name)
    done = handling.halt(folder, lambda: _saddle(folder), reason)
    click.echo(f"{name} is halted" if done else f"{name} stands already")


@command.command("resume")
@click.argument("name", metavar="NAME")
@project_option
def resume(name: str, project: Path) -> None:
    """Let a halted loop go on; a plateau, standstill or pass that holds it is forgotten, too.

    \b
    Example:
      ledgerd loop resume tests
    """
    from ledger.daemons.loop import handling
    from projections.loop_reasons import sentence_of

    folder = _folder(project, name)
    held = handling.resume(folder, lambda: _saddle(folder))
    click.echo(f"{name} runs" if held is None else f"{name} is held by {held}: {sentence_of(held)}")


@command.command("show")
@click.argument("name", metavar="NAME")
@project_option
@json_option
def show(name: str, project: Path, as_json: bool) -> None:
    """Show a loop: how it stands, its brakes, its rounds with scores and verdicts.

    \b
    Example:
      ledgerd loop show tests
    """
    from ledger.cli.loop_shown import print_loop
    from ledger.daemons.loop import handling
    from projections.loop_views import loop_view

    folder = _folder(project, name)
    view = loop_view(handling.look(folder, lambda: _saddle(folder)))
    if as_json:
        print_json(view)
    else:
        print_loop(view)


def _folder(project: Path, name: str) -> LoopFolder:
    from ledger.daemons.loop.folders import InvalidLoop, LoopFolder

    try:
        return LoopFolder(project, name)
    except InvalidLoop as error:
        raise click.UsageError(f"{error.detail}. {error.hint}") from error


def _saddle(folder: LoopFolder) -> Saddle:
    """A loop's outbox lies in its project, whatever LEDGERD_OUTBOX says; it has room for days without a server."""
    from ledger.client.saddle import Saddle

    folder.make()
    settings = current_settings()
    return Saddle(settings.url, settings.token, outbox=folder.outbox, bytes_max=OUTBOX_BYTES_MAX)


def _tell_json(summary: Summary) -> None:
    import msgspec

    click.echo(safe_json(msgspec.to_builtins(summary)))


def _tell_error(error: LedgerError) -> None:
    from ledger.cli import Failure

    Failure(error).show()


def _tell(summary: Summary) -> None:
    from projections.loop_reasons import sentence_of
    from projections.loop_views import tick_line

    if summary.verdict is not None:
        click.echo(tick_line(summary.verdict["pass"], summary.verdict["score"], summary.iter))
        for reason in summary.verdict["reasons"]:
            click.echo(f"  {one_line(reason)}")
        return
    word = "SKIP" if summary.skipped else "HALT"
    reason = one_line(summary.reason or "")
    click.echo(f"{word} {reason}: {one_line(sentence_of(reason))}")
