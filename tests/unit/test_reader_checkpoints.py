"""A catalog over many buckets is kept too, and folded on from where each bucket stood."""

from __future__ import annotations

from ledger.events.model import Recorded
from ledger.reader import Reader
from ledger.store.base import Heads, Opening, Write
from ledger.store.memory import MemoryStore
from tests.store.building import Clock, event


class Log(MemoryStore):
    """Remembers from where the feed was read."""

    def __init__(self) -> None:
        super().__init__(Clock(), buckets=3)
        self.read_from: list[Heads] = []

    async def read_feed(self, after: Heads, *, limit: int = 1000, decisive: bool = False) -> list[Recorded]:
        self.read_from.append(after)
        return await super().read_feed(after, limit=limit, decisive=decisive)


async def create(store: MemoryStore, task: str) -> None:
    payload = f'{{"id":"{task}","kind":"task","title":"Task {task}","brief":"","project_id":null,"goal_id":null}}'
    created = event(0, payload, kind="task.created", actor="owner")
    await store.append([Write(f"@task/{task}", [created], Opening(f"task/{task}", task, "owner"))])


async def test_a_catalog_over_many_buckets_is_folded_on_from_its_checkpoint() -> None:
    store = Log()
    for number in range(1, 9):
        await create(store, str(number))
    before = Reader(store)
    await before._load_catalog()
    before._catalog.save_after = 5
    await before.catalog()
    kept_at = await store.heads()
    await create(store, "9")
    store.read_from.clear()
    catalog = await Reader(store).catalog()
    assert sorted(catalog.work.tasks) == [str(number) for number in range(1, 10)]
    assert store.read_from[0] == kept_at
    assert catalog == await Reader(MemoryCopy(store)).catalog()


class MemoryCopy(Log):
    """The same log without what was kept."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self.__dict__.update({**log.__dict__, "_checkpoints": {}})
