"""Incidents as they are read and decided: over several buckets, at a cost of what is new, and by two at once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from ledger.commands import incidents_reading
from ledger.commands.incidents import IncidentCommands
from ledger.commands.incidents_reading import Incidents
from ledger.errors import InvalidField, NotFound, NotOffered
from ledger.events.decode import new_event
from ledger.events.model import OPENING_SEQ, Recorded, task_root
from ledger.store.base import Appended, Opening, Write
from ledger.store.memory import MemoryStore
from projections import incidents_folding, incidents_views
from projections.incidents_board import incident_id
from projections.sweep import AGENT
from tests.unit.projections.test_incidents_board import AGAIN, LOST

ID = incident_id("r", "f1")


class CountingStore(MemoryStore):
    """Counts the events that are read. Its appends take a while: what was read before may have moved."""

    read = 0

    async def append(self, writes: Sequence[Write]) -> Appended:
        await asyncio.sleep(0)
        return await super().append(writes)

    async def read_feed(self, *args: Any, **how: Any) -> list[Recorded]:
        return self._counted(await super().read_feed(*args, **how))

    async def read_stream(self, *args: Any, **how: Any) -> list[Recorded]:
        return self._counted(await super().read_stream(*args, **how))

    def _counted(self, events: list[Recorded]) -> list[Recorded]:
        self.read += len(events)
        return events


@pytest.fixture
def store() -> CountingStore:
    return CountingStore(buckets=8)


async def swept(store: MemoryStore, name: str, *facts: tuple[str, Any], ended: bool = True, at: int = 0) -> None:
    """A run of the sweep; its task, and so its root, is its own."""
    opening = new_event(OPENING_SEQ, "session.opened", "anvil", {"agent": AGENT, "task_id": name})
    said = [("sweep.started", {"register": "r"}), *facts]
    if ended:
        said += [("sweep.finished", {"status": "ok", "sessions_unreadable": 0}), ("result", {"state": "done"})]
    await store.append([Write(name, [], Opening(task_root(name), name, "anvil", event=opening))])
    await append(store, name, said, 0, at)


async def append(store: MemoryStore, name: str, said: Sequence[tuple[str, Any]], first: int, at: int = 0) -> None:
    events = [new_event(seq, kind, "sweep", payload, at or None) for seq, (kind, payload) in enumerate(said, first)]
    await store.append([Write(name, events)])


async def item(incidents: Incidents, id: str = ID) -> dict[str, Any]:
    one = incidents_views.incident(*await incidents.standing(), id)
    assert one is not None
    return incidents_views.item(one)


async def test_what_is_met_again_in_another_bucket_is_counted_in_whatever_order_buckets_are_read(
    store: CountingStore,
) -> None:
    names = [f"run-{number}" for number in range(20)]
    await swept(store, names[0], ("incident.filed", LOST))
    for name in names[1:]:
        await swept(store, name, ("incident.recurred", AGAIN))
    assert len({store.bucket_of(task_root(name)) for name in names}) > 4
    assert (await item(Incidents(store)))["times"] == 20


async def test_after_a_year_of_sweeps_a_read_costs_what_is_new(store: CountingStore) -> None:
    incidents = Incidents(store)
    for number in range(365):
        await swept(store, f"day-{number}", ("session.clean", {"source": "a", "key": str(number)}))
    await swept(store, "first", ("incident.filed", LOST))
    await incidents.board()
    store.read = 0
    await incidents.board()
    assert store.read == 0
    await swept(store, "next", ("incident.recurred", AGAIN))
    assert (await item(incidents))["times"] == 2
    assert store.read == 6, "its opening and its result as what decides, and its four events"


async def test_of_a_long_history_nothing_is_given_up_but_runs_that_never_ended(
    store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incidents_folding, "OPEN_MAX", 2)
    monkeypatch.setattr(incidents_reading, "_EVENTS_AT_ONCE", 7)
    for number in range(1, 31):
        fact = ("incident.recurred", AGAIN) if number > 1 else ("incident.filed", LOST)
        await swept(store, f"run-{number}", fact, ended=number % 5 != 0, at=number * 10**9)
    incidents = Incidents(store)
    assert (await item(incidents))["times"] == 30
    assert sorted((await incidents.board()).open) == ["run-25", "run-30"]


async def test_a_run_is_told_as_far_as_it_has_come_and_read_on_from_there(store: CountingStore) -> None:
    incidents = Incidents(store)
    await swept(store, "one", ("incident.filed", LOST), ended=False)
    assert (await item(incidents))["times"] == 1
    store.read = 0
    await append(store, "one", [("incident.recurred", AGAIN)], 2)
    assert (await item(incidents))["times"] == 2
    assert store.read == 1
    await append(store, "one", [("result", {"state": "failed"})], 4)  # what stands before it is on its way
    await incidents.board()
    await append(store, "one", [("incident.recurred", AGAIN)], 3)
    assert (await item(incidents))["times"] == 3
    assert not (await incidents.board()).open


async def test_another_server_goes_on_from_a_checkpoint_and_one_that_is_spoilt_changes_no_answer(
    store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incidents_reading, "_CHECKPOINT_AFTER_EVENTS", 10)
    await swept(store, "one", ("incident.filed", LOST))
    await swept(store, "two", ("incident.recurred", AGAIN))
    await swept(store, "three", ("incident.recurred", AGAIN), ended=False)
    told = await item(Incidents(store))
    store.read = 0
    assert await item(Incidents(store)) == told
    assert store.read < 13, "not all of it again"
    kept = await store.load_checkpoint("incidents", "1")
    assert kept is not None
    await store.save_checkpoint("incidents", type(kept)("1", kept.position, b"\xc1"))
    assert await item(Incidents(store)) == told


async def test_a_read_that_fails_on_its_way_is_repeated_and_counts_nothing_twice(
    store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incidents_reading, "_EVENTS_AT_ONCE", 2)
    for number in range(4):
        await swept(store, f"run-{number}", ("incident.filed", LOST), at=number + 1)
    incidents, read_stream, reads = Incidents(store), store.read_stream, 0

    async def failing(*args: Any, **how: Any) -> list[Recorded]:
        nonlocal reads
        reads += 1
        if reads % 3 == 0:
            raise OSError("gone")
        return await read_stream(*args, **how)

    monkeypatch.setattr(store, "read_stream", failing)
    failed = 0
    while True:
        try:
            board = await incidents.board()
            break
        except OSError:
            failed += 1
    assert failed > 1
    [week] = board.registers["r"].weeks.values()
    assert (week.runs, len(board.found[ID].again)) == (4, 3)


# Decisions


async def test_a_decision_is_an_event_with_who_and_why(store: CountingStore) -> None:
    await swept(store, "one", ("incident.filed", LOST))
    incidents = Incidents(store)
    commands = IncidentCommands(store, incidents)
    await commands.decide(ID, "acknowledge", "  mine ", "ann")
    await commands.decide(ID, "resolve", "", "ben")
    events = await store.read_stream("@incidents")
    assert [(event.seq, event.kind, event.actor) for event in events] == [
        (0, "incident.acknowledged", "ann"),
        (1, "incident.resolved", "ben"),
    ]
    assert json.loads(events[0].payload) == {
        "incident": ID,
        "register": "r",
        "fingerprint": "f1",
        "title": "Lost",
        "reason": "mine",
    }
    assert (await item(incidents))["status"] == "resolved"
    assert (await item(Incidents(store)))["status"] == "resolved"


async def test_of_two_who_decide_at_once_one_hears_of_the_other(store: CountingStore) -> None:
    await swept(store, "one", ("incident.filed", LOST))
    desks = [IncidentCommands(store, Incidents(store)) for _ in range(6)]
    answers = await asyncio.gather(
        *(desk.decide(ID, "resolve", "", f"owner-{n}") for n, desk in enumerate(desks)), return_exceptions=True
    )
    assert [type(answer) for answer in answers if answer is not None] == [NotOffered] * 5
    assert len(await store.read_stream("@incidents")) == 1


async def test_a_decision_that_is_not_open_is_refused_with_what_is(store: CountingStore) -> None:
    await swept(store, "one", ("incident.filed", LOST))
    commands = IncidentCommands(store, Incidents(store))
    with pytest.raises(NotOffered, match="is open: reopen is not open to it, acknowledge and resolve are"):
        await commands.decide(ID, "reopen", "", "ann")
    with pytest.raises(NotFound) as missing:
        await commands.decide("none", "resolve", "", "ann")
    assert missing.value.code == "unknown_incident"
    with pytest.raises(InvalidField):
        await commands.decide(ID, "resolve", "x" * 100_001, "ann")
    assert await store.read_stream("@incidents") == []
