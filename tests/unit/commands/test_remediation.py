"""Decisions about runs over a store that many use at once, in as many buckets as you like."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from ledger.commands.remediation import RemediationCommands
from ledger.commands.remediation_reading import Runs
from ledger.errors import Conflict, NotFound
from ledger.events.decode import new_event
from ledger.events.model import END_SEQ, Recorded, task_root
from ledger.reader import Reader
from ledger.store.base import Appended, Write
from ledger.store.memory import MemoryStore
from projections.remediation import facts, words
from projections.remediation.plan import Configuration, Project
from projections.remediation.register import ROOT

CONFIGURATION = Configuration((Project("master"), Project("parser")), "master")
PLAN = {"steps": [{"id": "s1", "order": 1, "target": "parser", "title": "T", "prompt": "P", "risk": "code"}]}
OWNER, SADDLE = "olga", "owner"


class SlowStore(MemoryStore):
    """What was read before an append, or before the next read, may have moved by then."""

    reads = 0

    async def append(self, writes: Sequence[Write]) -> Appended:
        await asyncio.sleep(0)
        return await super().append(writes)

    async def read_stream(self, stream: str, **how: Any) -> list[Recorded]:
        await asyncio.sleep(0)
        self.reads += 1
        return await super().read_stream(stream, **how)


class Ledger:
    def __init__(self, buckets: int = 7) -> None:
        self.store = SlowStore(buckets=buckets)
        self.runs = Runs(self.store, Reader(self.store))
        self.commands = RemediationCommands(self.store, self.runs, 2**20)

    async def start(self, owner: str = OWNER) -> str:
        return await self.commands.start(PLAN, owner, SADDLE)

    async def says(self, run_id: str, *decided: facts.Fact) -> None:
        run = (await self.runs.standing(run_id)).run
        events = [new_event(run.last_seq + n, fact.kind, "r", fact.payload) for n, fact in enumerate(decided, 1)]
        await self.store.append([Write(run_id, events, saddle=SADDLE, expected_seq=run.last_seq)])

    async def block(self, run_id: str) -> None:
        told = facts.run_blocked(words.PLAN_REVIEW, None, words.BY_VERDICT, "r", interrupted=False, repair="")
        await self.says(run_id, *told)


@pytest.fixture
async def ledger() -> Ledger:
    made = Ledger()
    await made.commands.configure(CONFIGURATION, OWNER)
    return made


async def test_of_twenty_starts_at_once_one_run_is_made(ledger: Ledger) -> None:
    outcomes = await asyncio.gather(*[ledger.start(f"o{n}") for n in range(20)], return_exceptions=True)
    [run_id] = [outcome for outcome in outcomes if isinstance(outcome, str)]
    assert [outcome.code for outcome in outcomes if isinstance(outcome, Conflict)] == ["run_conflict"] * 19
    assert [entry.run_id for entry in (await ledger.runs.register()).runs] == [run_id]
    assert await ledger.store.stream(run_id) is not None


@pytest.mark.parametrize("buckets", [1, 2, 16, 64])
async def test_a_run_lies_in_the_bucket_of_the_register(buckets: int) -> None:
    ledger = Ledger(buckets)
    await ledger.commands.configure(CONFIGURATION, OWNER)
    run_id = await ledger.start()
    assert ledger.store.bucket_of(task_root(run_id)) == ledger.store.bucket_of(ROOT)


async def test_a_start_and_a_configuration_that_race_are_both_done(ledger: Ledger) -> None:
    other = Configuration((*CONFIGURATION.projects, Project("more")), "master")
    run_id, new = await asyncio.gather(ledger.start(), ledger.commands.configure(other, OWNER))
    register = await ledger.runs.register()
    assert (new, register.configuration, len(register.runs)) == (True, other, 1)
    assert (await ledger.runs.standing(run_id)).active


async def test_a_resume_is_decided_again_where_a_runner_only_renewed_its_lease(ledger: Ledger) -> None:
    run_id = await ledger.start()
    await ledger.block(run_id)

    async def renew() -> None:
        for number in range(3):
            await ledger.says(run_id, facts.lease_taken("r", number))

    resumed = asyncio.create_task(ledger.commands.resume(None, OWNER, SADDLE))
    await asyncio.gather(renew(), resumed, return_exceptions=True)
    assert resumed.result() == run_id
    assert (await ledger.runs.standing(run_id)).run.status == words.RUNNING


async def test_of_resumes_and_approvals_at_once_one_moves_the_run(ledger: Ledger) -> None:
    run_id = await ledger.start()
    await ledger.block(run_id)
    wishes = [ledger.commands.resume(None, OWNER, SADDLE) for _ in range(5)]
    wishes += [ledger.commands.approve("", OWNER, SADDLE) for _ in range(5)]
    outcomes = await asyncio.gather(*wishes, return_exceptions=True)
    assert [outcome for outcome in outcomes if not isinstance(outcome, Conflict)] == [run_id]


async def test_a_run_is_folded_on_from_where_it_was_folded_last(ledger: Ledger) -> None:
    run_id = await ledger.start()
    await ledger.runs.standing(run_id)
    before = ledger.store.reads
    first, other = await asyncio.gather(ledger.runs.standing(run_id), ledger.runs.standing(run_id))
    assert first.run is other.run
    assert ledger.store.reads == before + 2
    await ledger.block(run_id)
    assert (await ledger.runs.standing(run_id)).run == (
        await Runs(ledger.store, Reader(ledger.store)).standing(run_id)
    ).run


async def test_an_end_in_its_slot_is_none_of_the_runs_own_and_ends_its_reading(ledger: Ledger) -> None:
    run_id = await ledger.start()
    end = new_event(END_SEQ, "result", "r", {"state": "done"})
    await ledger.store.append([Write(run_id, [end], saddle=SADDLE)])
    standing = await ledger.runs.standing(run_id)
    assert (standing.run.status, standing.cancelled, standing.active) == (words.RUNNING, True, False)
    assert await ledger.start() != run_id


async def test_another_owners_run_is_unknown_and_ones_own_is_told_when_it_is_over(ledger: Ledger) -> None:
    mine = await ledger.start()
    with pytest.raises(NotFound):
        await ledger.runs.current("otto")
    with pytest.raises(NotFound):
        await ledger.commands.resume(None, "otto", SADDLE, mine)
    await ledger.says(mine, *facts.run_completed(1))
    assert await ledger.runs.current("otto") is None
    his = await ledger.start("otto")
    with pytest.raises(NotFound):
        await ledger.runs.current(OWNER)
    await ledger.says(his, *facts.run_completed(1))
    standing = await ledger.runs.current(OWNER)
    assert standing is not None
    assert standing.run.id == mine
