from __future__ import annotations

import click

from ledger.cli.connecting import connect
from ledger.cli.output import json_option, moment, print_json, print_table, status


@click.command("goals")
@click.option("--status", "state", help="Only the goals in this status, such as running or failed.")
@click.option("--project", "project_id", help="Only the goals of this project.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many at most.")
@click.option("--after", metavar="CURSOR", help="Go on behind the `next` of an earlier list.")
@json_option
def command(state: str | None, project_id: str | None, limit: int, after: str | None, as_json: bool) -> None:
    """List the goals, the most recently moved first.

    \b
    Example:
      ledgerd goals --status failed
    """
    with connect() as api:
        page = api.goals(status=state, project_id=project_id, limit=limit, after=after)
    if as_json:
        print_json(page)
        return
    print_table(
        ["id", "status", "updated (UTC)", "title", "summary"],
        [
            (goal["id"], status(goal["status"]), moment(goal["updated_at"]), goal["title"], goal["summary"] or "")
            for goal in page["items"]
        ],
    )
    if page["next"]:
        click.echo(f"more: ledgerd goals --after {page['next']}", err=True)
