"""A ledger without a network or a file: the application over the store in memory, and a clock that stands still."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from ledger.events.model import Limits
from ledger.http.app import make_app
from ledger.http.services import Services
from ledger.store.memory import MemoryStore

NOW_NS = 1_764_555_000 * 10**9
SILENT_AFTER_NS = 300 * 10**9
TOKEN = "ld_owner_in-process"


class Desk:
    """What the owner, and the owner's saddle, say to the ledger."""

    def __init__(self, services: Services, http: httpx.AsyncClient, times: list[int]) -> None:
        self.services = services
        self.http = http
        self._times = times

    def wait(self, seconds: int) -> None:
        self._times[0] += seconds * 10**9

    async def get(self, path: str) -> Any:
        return (await self.http.get(path)).raise_for_status().json()

    async def page(self, path: str) -> str:
        return (await self.http.get(path, headers={"Accept": "text/html"})).raise_for_status().text

    async def post(self, path: str, **body: Any) -> Any:
        return (await self.http.post(path, json=body)).raise_for_status().json()

    async def started_goal(self, title: str, session_id: str) -> tuple[str, str]:
        """The ids of a goal that was started and of its run, on which a session works."""
        goal_id = (await self.post("/api/goals", title=title))["id"]
        await self.post(f"/api/goals/{goal_id}/start")
        run = (await self.get(f"/api/goals/{goal_id}"))["run_task_id"]
        await self.open(session_id, run)
        return goal_id, run

    async def open(self, session_id: str, task_id: str, **more: Any) -> None:
        await self.post("/api/saddle/sessions", session_id=session_id, task_id=task_id, **more)

    async def push(self, session_id: str, *events: tuple[int, str, Any]) -> None:
        rows = [{"seq": seq, "kind": kind, "actor": "model", "payload": payload} for seq, kind, payload in events]
        await self.post("/api/saddle/chunks", session_id=session_id, events=rows)

    async def result(self, session_id: str, state: str, summary: str = "", times: int = 1) -> None:
        for _ in range(times):
            await self.post("/api/saddle/results", session_id=session_id, state=state, summary=summary)

    async def browser(self, role: str = "owner", name: str = "owner") -> httpx.AsyncClient:
        """Somebody who has logged in, with a token of that role and name."""
        _, token = await self.services.access.mint(role, name)
        http = httpx.AsyncClient(
            transport=self.http._transport, base_url="http://ledger", headers={"Accept": "text/html"}
        )
        await http.post("/login", data={"token": token, "next": "/"})
        return http


def said(html: str) -> str:
    """The words of a page, without its markup."""
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


@asynccontextmanager
async def desk() -> AsyncIterator[Desk]:
    times = [NOW_NS]
    store = MemoryStore(clock=lambda: times[0])
    services = Services(
        store, clock=lambda: times[0], secret=b"secret", limits=Limits(), silent_after_ns=SILENT_AFTER_NS
    )
    await services.access.mint("owner", "owner", token=TOKEN)
    transport = httpx.ASGITransport(make_app(services))
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://ledger", headers=headers) as http:
        yield Desk(services, http, times)
    await store.close()
