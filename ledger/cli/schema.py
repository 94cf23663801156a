from __future__ import annotations

import click

from ledger.cli.settings import setting
from ledger.errors import InvalidField
from ledger.store.postgres_url import is_postgres, parse_url


@click.command("schema")
@setting("store", metavar="URL", help="The kind of store; of a postgresql:// URL also its schema.")
@click.option("--citus", is_flag=True, help="With the calls that spread a PostgreSQL store over a Citus cluster.")
def command(store: str, citus: bool) -> None:
    """Print the SQL that a store is made of. A server makes what is missing by itself, but for Citus.

    \b
    Example:
      ledgerd schema | less
      ledgerd schema --store postgresql://coordinator/ledger --citus | psql -h coordinator ledger
    """
    if is_postgres(store):
        from ledger.store import postgres_schema

        click.echo(postgres_schema.ddl(parse_url(store).schema, citus=citus), nl=False)
        return
    if citus:
        raise InvalidField("citus", "is for PostgreSQL", hint="Give --store postgresql://… with it.")
    from ledger.store import sqlite_file

    click.echo(sqlite_file.ddl(), nl=False)
