from __future__ import annotations

import click

from ledger.cli.connecting import connect
from ledger.cli.output import json_option, moment, print_json, print_table


@click.group("token")
def command() -> None:
    """Create, list and revoke access tokens.

    \b
    Example:
      ledgerd token create --role saddle --name build-1
    """


@command.command("create")
@click.option("--role", type=click.Choice(["owner", "reader", "saddle"]), required=True, help="What it may do.")
@click.option("--name", required=True, help="Whose it is; a new token for a name is the same saddle.")
@click.option("--expires-at", metavar="TIME", help="When it ends, such as 2027-01-31T00:00:00Z; never if not given.")
@json_option
def create(role: str, name: str, expires_at: str | None, as_json: bool) -> None:
    """Create a token and print it. It is shown this once; the ledger keeps only its hash.

    \b
    Example:
      LEDGERD_TOKEN=$(ledgerd token create --role saddle --name build-1)
    """
    with connect() as api:
        made = api.create_token(role, name, expires_at=expires_at)
    if as_json:
        print_json(made)
    else:
        click.echo(made["token"])


@command.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the tokens, without what they are.

    \b
    Example:
      ledgerd token list
    """
    with connect() as api:
        page = api.tokens()
    if as_json:
        print_json(page)
        return
    print_table(
        ["id", "role", "created (UTC)", "ends (UTC)", "name"],
        [
            (token["id"], token["role"], moment(token["created_at"]), _end(token), token["name"])
            for token in page["items"]
        ],
    )


@command.command("revoke")
@click.argument("token_id", metavar="ID")
def revoke(token_id: str) -> None:
    """Revoke a token: from now on it lets nobody in.

    \b
    Example:
      ledgerd token revoke 3
    """
    with connect() as api:
        api.revoke_token(token_id)


def _end(token: dict[str, str | None]) -> str:
    if token.get("revoked_at"):
        return f"revoked {moment(token['revoked_at'])}"
    return moment(token["expires_at"])
