from __future__ import annotations

import click
from rich.text import Text

from ledger.cli.connecting import connect
from ledger.cli.narrative import print_facts, print_heading, print_story
from ledger.cli.output import console, json_option, print_json, print_table, status


@click.command("task")
@click.argument("task_id", metavar="ID")
@json_option
def command(task_id: str, as_json: bool) -> None:
    """Show what a task went through: its attempts and sessions, each thing that happened once, what it cost.

    \b
    Example:
      ledgerd task 12
    """
    with connect() as api:
        task = api.task(task_id)
    if as_json:
        print_json(task)
        return
    print_heading("task", task)
    console().print(Text("\nSessions", style="bold"))
    print_table(
        ["attempt", "state", "saddle", "agent", "session"],
        [
            (
                str(session["attempt"]),
                status(session["state"]),
                session["saddle"] or "",
                session["agent"] or "",
                session["session_id"],
            )
            for session in task["sessions"]
        ],
    )
    print_story(task)
    print_facts(task)
