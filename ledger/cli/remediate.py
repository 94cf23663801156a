from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ledger.cli.output import json_option, print_json
from ledger.cli.settings import InvalidSettings, current_settings
from ledger.cli.terminal import one_line
from ledger.errors import InvalidField, InvalidRequest

if TYPE_CHECKING:
    from ledger.daemons.remediation.settings import RemediationSettings
    from projections.remediation.plan import Problem

PLAN_BYTES_MAX = 16 * 2**20

_plan = click.argument("plan", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="PLAN.json")


@click.group("remediate")
def command() -> None:
    """Work a plan through several projects, supervised: a master reviews the plan and every step, an agent of each
    project does the work, and a repair mends the tool where a run gets stuck.

    \b
    Projects and agents stand under [remediation] in ledgerd.toml:
      [remediation]
      master = "platform"
      tool_project = "tool"
      [remediation.projects.platform]
      path = "../platform"
      agent = "claude"

    \b
    Example:
      ledgerd remediate start PLAN.json
      ledgerd remediate daemon
    """


@command.command("start")
@_plan
@json_option
def start(plan: Path, as_json: bool) -> None:
    """Start a run of a plan. One run is active at a time; a blocked one counts.

    \b
    Example:
      ledgerd remediate start PLAN.json
    """
    from ledger.cli.remediation import connect, publish
    from ledger.daemons.remediation.settings import check

    settings = _settings()
    check(settings)
    steps = _checked(plan, settings)
    with connect(settings) as api:
        publish(api, settings)
        run = api.start_remediation(steps)
    print_json(run) if as_json else click.echo(f"run {one_line(run['run_id'])} is {run['status']}: {run['stage']}")


@command.command("tick")
@json_option
def tick(as_json: bool) -> None:
    """Make one move of the active run, and say what came of it: processed, self_repair_processed,
    self_repair_recovered, blocked, waiting or idle. Exits with 1 where something broke and the run is blocked.

    \b
    Example:
      ledgerd remediate tick --json
    """
    from ledger.cli.remediation import connect, publish, running, server_of
    from ledger.daemons.agent import stopping_on_signals
    from ledger.daemons.remediation.machine import BLOCKED

    settings = _settings()
    with stopping_on_signals() as stop, running(settings, server_of(settings), stop) as runner:
        with connect(settings) as api:
            publish(api, settings)
        result = runner.tick()
        standing = {"result": result, "run_id": runner.run.id or None, "status": runner.run.status}
    print_json({**standing, "stage": runner.run.stage}) if as_json else click.echo(result)
    sys.exit(1 if result == BLOCKED else 0)


@command.command("daemon")
@click.option("--until-idle", is_flag=True, help="End when nothing is left to do: no run, or it waits for its owner.")
@click.option("--poll", "poll_s", type=click.FloatRange(min=0.05), default=2.0, metavar="SECONDS", show_default=True)
def daemon(until_idle: bool, poll_s: float) -> None:
    """Move runs on until a signal ends it. The agent that is at work then is ended, too, and its step is blocked.

    \b
    Example:
      ledgerd remediate daemon
    """
    from ledger.cli.remediation import keep_ticking

    keep_ticking(_settings(), poll_s=poll_s, until_idle=until_idle)


@command.command("resume")
@click.argument(
    "plan", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="[PLAN.json]", required=False
)
@json_option
def resume(plan: Path | None, as_json: bool) -> None:
    """Go on with a blocked run, with revised prompts where a plan is given. Its order, targets and risks stay.

    \b
    Example:
      ledgerd remediate resume REVISED.json
    """
    from ledger.cli.remediation import connect

    settings = _settings()
    steps = None if plan is None else _checked(plan, settings)
    with connect(settings) as api:
        run = api.resume_remediation(steps)
    print_json(run) if as_json else click.echo(f"run {one_line(run['run_id'])} is {run['status']}: {run['stage']}")


@command.command("approve")
@click.argument("feedback", default="", metavar="[FEEDBACK]")
@json_option
def approve(feedback: str, as_json: bool) -> None:
    """Grant what a blocked run asks its owner for, such as a deploy, and go on. The step is not done by that: its
    agent goes on, and the master judges.

    \b
    Example:
      ledgerd remediate approve "Deploy it after 18:00."
    """
    from ledger.cli.remediation import connect

    with connect(_settings()) as api:
        run = api.approve_remediation(feedback)
    print_json(run) if as_json else click.echo(f"run {one_line(run['run_id'])} is {run['status']}: {run['stage']}")


@command.command("show")
@click.argument("run_id", required=False, metavar="[ID]")
@json_option
def show(run_id: str | None, as_json: bool) -> None:
    """Show the active run, else the newest: where it stands, its steps, and what it waits for.

    \b
    Example:
      ledgerd remediate show
    """
    from ledger.cli.remediation import connect, print_run

    with connect(_settings()) as api:
        run = api.remediation(run_id)
    print_json(run) if as_json else print_run(run)


@command.command("schema")
def schema() -> None:
    """Print the JSON schema of a plan.

    \b
    Example:
      ledgerd remediate schema > plan.schema.json
    """
    click.echo((files("ledger") / "docs" / "plan.schema.json").read_text(encoding="utf-8"), nl=False)


@command.group("plan")
def plan_group() -> None:
    """Look at plans before anything runs.

    \b
    Example:
      ledgerd remediate plan check PLAN.json
    """


@plan_group.command("check")
@_plan
@json_option
def plan_check(plan: Path, as_json: bool) -> None:
    """Say what is wrong with a plan, and where: ids, order, targets, aliases, prompts, risk. Exits with 1 if anything
    is.

    \b
    Example:
      ledgerd remediate plan check PLAN.json
    """
    from projections.remediation.plan import check_plan, project_of

    configuration = _settings().published()
    steps, problems = check_plan(_read(plan), configuration)
    targets = {step.id: project_of(step, configuration.projects) for step in steps}
    if as_json:
        told = {"problems": msgspec.to_builtins(problems), "targets": targets}
        print_json({"ok": not problems, **told})
    else:
        for problem in problems:
            click.echo(_told(problem))
        if not problems:
            for step in steps:
                click.echo(f"{step.order}\t{one_line(step.id)}\t{one_line(str(targets[step.id]))}\t{step.risk}")
    sys.exit(1 if problems else 0)


def _settings() -> RemediationSettings:
    """What stands under [remediation]. Raises InvalidSettings, naming the key."""
    from ledger.daemons.remediation.settings import RemediationSettings

    try:
        return msgspec.convert(current_settings().remediation, RemediationSettings)
    except msgspec.ValidationError as error:
        known = ", ".join(RemediationSettings.__struct_fields__)
        raise InvalidSettings(f"remediation: {error}", hint=f"Its keys are {known}.") from error


def _checked(path: Path, settings: RemediationSettings) -> list[dict[str, Any]]:
    """The steps of a plan, as they are sent. Raises InvalidField for the first thing that is wrong with them."""
    from projections.remediation.plan import check_plan

    steps, problems = check_plan(_read(path), settings.published())
    if problems:
        more = f" (and {len(problems) - 1} more: ledgerd remediate plan check {path})" if len(problems) > 1 else ""
        raise InvalidField(problems[0].field, problems[0].detail + more, hint=problems[0].hint)
    return _sent(steps)


def _sent(steps: Sequence[Any]) -> list[dict[str, Any]]:
    return [{name: value for name, value in one.items() if value not in ("", ())} for one in map(_builtins, steps)]


def _builtins(step: Any) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(step)
    return found


def _read(path: Path) -> Any:
    try:
        if path.stat().st_size > PLAN_BYTES_MAX:
            raise InvalidRequest(f"{path} has more than {PLAN_BYTES_MAX} bytes", hint="Write a shorter plan.")
        return msgspec.json.decode(path.read_bytes())
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidRequest(
            f"{path} is no JSON: {error}", hint="`ledgerd remediate schema` says what a plan is."
        ) from error
    except OSError as error:
        raise InvalidRequest(f"{path}: {error.strerror}", hint="Name a file that can be read.") from error


def _told(problem: Problem) -> str:
    hint = f" {problem.hint}" if problem.hint else ""
    return one_line(f"{problem.field}: {problem.detail}.{hint}")
