"""Incidents on several servers of one PostgreSQL ledger, whose sweeps lie in several buckets."""

from __future__ import annotations

import asyncio

from ledger.commands.incidents import IncidentCommands
from ledger.commands.incidents_reading import Incidents
from ledger.errors import NotOffered
from ledger.events.model import task_root
from ledger.store.postgres import PostgresStore
from tests.postgres import TestLedgers
from tests.unit.commands.test_incidents import ID, item, swept
from tests.unit.projections.test_incidents_board import AGAIN, LOST


async def test_all_servers_tell_the_same_and_of_those_who_decide_at_once_one_is_heard(postgres: TestLedgers) -> None:
    url = postgres.fresh(buckets=4)
    one, other = await PostgresStore.open(url), await PostgresStore.open(url)
    try:
        here, there = Incidents(one), Incidents(other)
        names = [f"run-{number}" for number in range(6)]
        await swept(one, names[0], ("incident.filed", LOST))
        assert (await item(there))["times"] == 1
        for name in names[1:]:
            await swept(other, name, ("incident.recurred", AGAIN))
        assert len({one.bucket_of(task_root(name)) for name in names}) > 1
        told = await item(here)
        assert (told["times"], told) == (6, await item(there))
        desks = [IncidentCommands(one, here), IncidentCommands(other, there)]
        answers = await asyncio.gather(
            *(desk.decide(ID, "resolve", "", "ann") for desk in desks), return_exceptions=True
        )
        assert [type(answer) for answer in answers if answer is not None] == [NotOffered]
        assert (await item(here)) == (await item(there))
        assert (await item(Incidents(other)))["status"] == "resolved"
    finally:
        await one.close()
        await other.close()
