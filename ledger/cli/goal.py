from __future__ import annotations

import click
from rich.text import Text

from ledger.cli.connecting import connect
from ledger.cli.narrative import print_facts, print_heading, print_story
from ledger.cli.output import console, json_option, print_json, print_table, status


@click.command("goal")
@click.argument("goal_id", metavar="ID")
@click.option("--at", metavar="CURSOR", help="The goal as it stood then.")
@json_option
def command(goal_id: str, at: str | None, as_json: bool) -> None:
    """Show what a goal went through: its tasks, each thing that happened once, what it cost.

    \b
    Example:
      ledgerd goal 7
    """
    with connect() as api:
        goal = api.goal(goal_id, at=at)
    if as_json:
        print_json(goal)
        return
    print_heading("goal", goal)
    console().print(Text("\nTasks", style="bold"))
    print_table(
        ["id", "kind", "status", "attempt", "title"],
        [
            (task["id"], task["kind"], status(task["status"]), str(task["attempt"]), task["title"])
            for task in goal["tasks"]
        ],
    )
    print_story(goal)
    print_facts(goal)
