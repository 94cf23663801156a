from __future__ import annotations

import click

from ledger.store.sqlite_file import ddl


@click.command("schema")
def command() -> None:
    """Print the SQL that a SQLite store is made of.

    \b
    Example:
      ledgerd schema | less
    """
    click.echo(ddl(), nl=False)
