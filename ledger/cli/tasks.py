from __future__ import annotations

import click

from ledger.cli.connecting import connect
from ledger.cli.output import json_option, moment, print_json, print_table, status


@click.command("tasks")
@click.option("--status", "state", help="Only the tasks in this status, such as waiting or failed.")
@click.option("--project", "project_id", help="Only the tasks of this project.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many at most.")
@click.option("--after", metavar="CURSOR", help="Go on behind the `next` of an earlier list.")
@json_option
def command(state: str | None, project_id: str | None, limit: int, after: str | None, as_json: bool) -> None:
    """List the tasks, the most recently moved first.

    \b
    Example:
      ledgerd tasks --status waiting
    """
    with connect() as api:
        page = api.tasks(status=state, project_id=project_id, limit=limit, after=after)
    if as_json:
        print_json(page)
        return
    print_table(
        ["id", "goal", "status", "updated (UTC)", "title", "summary"],
        [
            (
                task["id"],
                task["goal_id"] or "",
                status(task["status"]),
                moment(task["updated_at"]),
                task["title"],
                task["summary"] or "",
            )
            for task in page["items"]
        ],
    )
    if page["next"]:
        click.echo(f"more: ledgerd tasks --after {page['next']}", err=True)
