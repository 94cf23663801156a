"""Live readers: each is told all that moved, and none is kept that has left."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, MutableMapping
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import StreamingResponse

from ledger.errors import Overloaded
from ledger.events.decode import new_event
from ledger.events.model import Limits
from ledger.http import hub as hubs
from ledger.http.auth import READER
from ledger.http.hub import Hub
from ledger.http.live import live
from ledger.http.services import Services
from ledger.store.base import Heads, Opening, Write
from ledger.store.memory import MemoryStore


class BusyStore(MemoryStore):
    """A store on which another root moves while the heads are asked for, as on one that is reached over a network."""

    def __init__(self) -> None:
        super().__init__()
        self.moving: list[str] = []

    async def heads(self) -> Heads:
        if self.moving:
            await write(self, self.moving.pop())
        return await super().heads()


async def write(store: MemoryStore, name: str) -> None:
    opening = Opening(f"task/{name}", name, "anvil")
    await store.append([Write(name, [new_event(0, "message", "model", {})], opening=opening)])


@pytest.fixture
def store() -> BusyStore:
    return BusyStore()


@pytest.fixture
def services(store: BusyStore) -> Services:
    return Services(store, clock=lambda: 0, secret=b"secret", limits=Limits(), silent_after_ns=1)


async def streaming(services: Services) -> StreamingResponse:
    """The answer to a reader of /api/live, of which nothing has been read yet."""
    _, token = await services.access.mint(READER, "rita")

    class App:
        class state:
            pass

    App.state.services = services  # type: ignore[attr-defined]
    scope: MutableMapping[str, Any] = {"type": "http", "method": "GET", "path": "/api/live", "query_string": b""}
    scope |= {"headers": [(b"authorization", f"Bearer {token}".encode())], "app": App}
    answer = await live(Request(scope))
    assert isinstance(answer, StreamingResponse)
    return answer


def told(message: Any) -> dict[str, Any]:
    return dict(json.loads(bytes(message).decode().partition("data: ")[2]))


async def test_a_cursor_is_never_ahead_of_what_was_told(services: Services, store: BusyStore) -> None:
    messages: AsyncIterator[Any] = aiter((await streaming(services)).body_iterator)
    start = await services.heads(told(await anext(messages))["cursor"])
    for name in ("1", "3"):
        store.moving = ["2", "4"]
        await write(store, name)
        moved = told(await anext(messages))
        since = {event.root for event in await store.read_feed(start)}
        still_to_come = {event.root for event in await store.read_feed(await services.heads(moved["cursor"]))}
        assert since - still_to_come <= set(moved["roots"])
        start = await services.heads(moved["cursor"])


async def test_a_reader_that_left_before_its_stream_began_is_not_kept(services: Services) -> None:
    answer = await streaming(services)
    assert len(services.hub) == 0
    messages = aiter(answer.body_iterator)
    await anext(messages)
    assert len(services.hub) == 1
    await messages.aclose()  # type: ignore[attr-defined]
    assert len(services.hub) == 0


async def test_there_is_an_end_to_how_many_may_listen(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "LISTENERS_MAX", 2)
    kept = [services.hub.listen() for _ in range(2)]
    with pytest.raises(Overloaded):
        services.hub.listen()
    with pytest.raises(Overloaded):
        await streaming(services)
    services.hub.leave(kept[0])
    services.hub.listen()


async def test_a_listener_is_rung_only_for_its_own_roots_and_told_each_once(store: BusyStore) -> None:
    hub = Hub(store)
    listener = hub.listen(frozenset({"task/1", "task/3"}))
    await write(store, "2")
    assert not await listener.rung(0)
    for name in ("3", "1"):
        await write(store, name)
    assert await listener.rung(1)
    assert listener.moved() == {"task/1", "task/3"}
    assert not await listener.rung(0)
    assert listener.moved() == set()


async def test_a_hub_that_closes_rings_everybody_and_hears_no_more(store: BusyStore) -> None:
    hub = Hub(store)
    listeners = [hub.listen(), hub.listen(frozenset({"task/9"}))]
    hub.close()
    hub.close()
    assert [await listener.rung(1) for listener in listeners] == [True, True]
    await write(store, "1")
    assert not await listeners[0].rung(0)
