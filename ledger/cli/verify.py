from __future__ import annotations

import asyncio

import click

from ledger.cli.output import json_option, print_json
from ledger.cli.settings import setting
from ledger.cli.stores import open_store
from ledger.errors import LedgerDamaged
from ledger.store.verifying import Verdict, verify


@click.command("verify")
@setting("store", metavar="URL", help="The ledger to verify; a server may go on serving it.")
@click.option("--expect", metavar="SEAL", help="A seal that was printed earlier and kept elsewhere.")
@json_option
def command(store: str, expect: str | None, as_json: bool) -> None:
    """Recompute the seals over everything in a ledger, and name the first transaction that does not match.

    Keep the seal that is printed where nobody can write to it. Given as --expect another time, it also proves that
    nothing was cut off the end.

    \b
    Example:
      ledgerd verify --expect 5f1d…
    """
    verdict = asyncio.run(_verify(store, expect))
    if as_json:
        print_json(verdict)
        if not verdict.ok:
            raise SystemExit(1)
    elif not verdict.ok:
        raise LedgerDamaged(verdict.what)
    else:
        click.echo(f"{verdict.events} events in {verdict.seals} transactions, all as they were sealed")
        for seal in verdict.head:
            click.echo(f"seal {seal}")


async def _verify(url: str, expect: str | None) -> Verdict:
    store = await open_store(url, read_only=True)
    try:
        return await verify(store, expect=expect)
    finally:
        await store.close()
