"""What `ledgerd remediate` does with a server: publishes, ticks, shows."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import click
import msgspec
from rich.text import Text

from ledger.cli.output import console, moment, print_table, status
from ledger.cli.settings import current_settings
from ledger.cli.terminal import one_line
from ledger.client.api import Api, ApiError, server_from_environment
from ledger.client.retries import backoff_s
from ledger.client.saddle import Saddle
from ledger.daemons.agent import Stop, stopping_on_signals
from ledger.daemons.remediation.journal import ServerJournal, server_journal
from ledger.daemons.remediation.machine import MOVED
from ledger.daemons.remediation.repositories import Git
from ledger.daemons.remediation.runner import Runner
from ledger.daemons.remediation.settings import RemediationSettings, check
from ledger.daemons.remediation.turns import Agents
from ledger.errors import InvalidRequest
from projections.remediation import words

STATES = {"COMPLETED": "done", "APPROVED": "done", "BLOCKED": "failed", "NEEDS_USER": "waiting"}


def connect(settings: RemediationSettings) -> Api:
    """A client with the owner's token: of [remediation], else that of the other commands."""
    return Api(*server_of(settings))


def publish(api: Api, settings: RemediationSettings) -> None:
    """Tells the server which projects there are, by their names, so that it can check plans."""
    api.configure_remediation(msgspec.to_builtins(settings.published()))


@contextmanager
def running(settings: RemediationSettings, server: tuple[str, str], stop: Stop) -> Iterator[Runner]:
    """A runner of this process, on the server of that URL and token; `stop` ends its agent."""
    check(settings)
    url, token = server
    state_dir = _state_dir(settings)
    with Api(url, token) as api, Saddle(url, token, outbox=state_dir / "outbox.db") as saddle:
        runner = Runner(
            ServerJournal(api),
            Agents(settings, saddle, state_dir),
            Git(),
            name=f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}",
            tool_project=settings.tool_project,
            lease_s=settings.lease_s,
            stop=stop,
            keep=lambda: server_journal(lambda: Api(url, token)),
        )
        try:
            yield runner
        finally:
            runner.leave()


def keep_ticking(settings: RemediationSettings, *, poll_s: float, until_idle: bool) -> None:
    """Ticks until a signal comes; says what each tick came to. Waits for a server that is away."""
    random = Random()  # noqa: S311 — spreads retries
    with stopping_on_signals() as stop, running(settings, server_of(settings), stop) as runner:
        failures, published = 0, False
        while not stop.is_set():
            try:
                if not published:
                    with connect(settings) as api:
                        publish(api, settings)
                    published = True
                result = runner.tick()
            except ApiError as error:
                if not _passes(error):
                    raise
                failures += 1
                if failures == 1:
                    click.echo(f"waiting: {one_line(error.detail)}", err=True)
                stop.wait(backoff_s(failures, random))
                continue
            failures = 0
            if result in MOVED:
                click.echo(one_line(f"{result}: run {runner.run.id} is {runner.run.status}, {runner.run.stage}"))
            elif until_idle:
                return
            else:
                stop.wait(poll_s)


def print_run(run: dict[str, Any]) -> None:
    out = console()
    if "run_id" not in run:
        out.print("No run was started.")
        return
    out.print(
        Text(f"run {one_line(run['run_id'])}: ", style="bold"), _state(run["status"]), f", {run['stage']}", sep=""
    )
    if run["error"]:
        out.print(f"it stands: {one_line(run['error'])}")
    repair = run["self_repair"]
    if repair is not None:
        told = f": {one_line(repair['feedback'])}" if repair["feedback"] else ""
        out.print(f"repair {repair['number']}: {repair['status']}{told}")
    converging = {one["step"]: one for one in run["convergence"]}
    out.print(Text("\nSteps", style="bold"))
    print_table(
        ["step", "status", "project", "attempts", "findings", "title"],
        [
            (
                one["id"],
                _state(one["status"]),
                one["project"],
                str(one["attempts"]),
                " → ".join(map(str, converging[one["id"]]["findings"])) if one["id"] in converging else "",
                one["title"],
            )
            for one in run["steps"]
        ],
    )
    cost = f"${run['cost_usd']:.2f}" + (
        f", {run['turns_without_cost']} turns did not say" if run["turns_without_cost"] else ""
    )
    out.print(f"\nstarted {moment(run['started_at'])}, cost {cost}")
    if run["actions"]:
        out.print(f"open to you: {', '.join(f'ledgerd remediate {name}' for name in run['actions'])}")


def _state(state: str) -> Text:
    shown = status(STATES.get(state, state))
    return Text(one_line(state), style=shown.style)


def _passes(error: ApiError) -> bool:
    return error.status is None or error.status in (429, 502, 503, 504)


def server_of(settings: RemediationSettings) -> tuple[str, str]:
    """The URL and the owner's token. Raises InvalidRequest inside a turn of a run, where that token may lie about:
    an agent that takes it into its head to approve its own step is told whose decision that is."""
    run_id, _, conversation = os.environ.get("LEDGERD_SESSION", "").partition("/")
    if conversation and words.RUN_ID.fullmatch(run_id):
        hint = "Say in your reply what you need of the owner."
        raise InvalidRequest(f"this is an agent's turn of {run_id}, which its owner alone moves", hint=hint)
    ours = current_settings()
    url, token = server_from_environment()
    return ours.url or url, settings.token or ours.token or token


def _state_dir(settings: RemediationSettings) -> Path:
    """Where replies wait, and what is to be sent: `state_dir`, else in the XDG state folder."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    named = settings.state_dir
    folder = Path(base) / "ledgerd" / "remediation" if named is None else Path(named).expanduser()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder.absolute()
