from __future__ import annotations

import asyncio
import re
from typing import Any

import httpx
import pytest

from ledger.events.model import Recorded
from ledger.http import rendering
from tests.unit.http.in_process import TOKEN, Desk, desk


async def visitor(ledger: Desk, token: str = TOKEN) -> httpx.AsyncClient:
    """A browser that has logged in."""
    transport = ledger.http._transport
    browser = httpx.AsyncClient(transport=transport, base_url="http://ledger", headers={"Accept": "text/html"})
    await browser.post("/login", data={"token": token, "next": "/"})
    return browser


def csrf_of(html: str) -> set[str]:
    return set(re.findall(r'name="csrf" value="([^"]*)"', html))


async def test_visitors_share_a_page_and_not_what_is_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: list[str] = []
    goal_page = rendering.goal_page

    def counting(*args: object, **more: object) -> str:
        rendered.append("goal")
        return goal_page(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(rendering, "goal_page", counting)
    async with desk() as ledger:
        goal, _ = await ledger.started_goal("Port it", "a")
        _, second_token = await ledger.services.access.mint("owner", "ann <b>")
        one, other = await visitor(ledger), await visitor(ledger, second_token)
        pages = await asyncio.gather(*(browser.get(f"/goals/{goal}") for browser in (one, other, one, other)))
        assert rendered == ["goal"]
        tokens = [csrf_of(page.text) for page in pages]
        assert all(len(token) == 1 for token in tokens)
        assert tokens[0] != tokens[1]
        assert "ann &lt;b&gt;, owner" in pages[1].text
        assert "ann" not in pages[0].text
        answer = await other.post(f"/goals/{goal}/cancel", data={"csrf": tokens[1].pop()})
        assert answer.status_code == 303


async def test_a_reader_never_gets_the_page_of_an_owner() -> None:
    async with desk() as ledger:
        goal, _ = await ledger.started_goal("Port it", "a")
        _, token = await ledger.services.access.mint("reader", "wallboard")
        owner, reader = await visitor(ledger), await visitor(ledger, token)
        for _ in range(2):
            assert "/cancel" in (await owner.get(f"/goals/{goal}")).text
            assert "/cancel" not in (await reader.get(f"/goals/{goal}")).text


async def test_a_page_shows_what_was_pushed_before_it_was_asked_for() -> None:
    async with desk() as ledger:
        goal, _ = await ledger.started_goal("Port it", "a")
        for seq in range(5):
            await ledger.push("a", (seq, "comment", {"body": f"Step {seq}."}))
            for path in (f"/goals/{goal}", "/"):
                assert f"Step {seq}." in await ledger.page(path)


async def test_a_link_to_one_event_shows_what_stands_before_it() -> None:
    async with desk() as ledger:
        await ledger.started_goal("Port it", "a")
        await ledger.push("a", *((seq, "comment", {"body": f"Step {seq}."}) for seq in range(600)))
        html = await ledger.page("/sessions/a?around=300")
        assert "Step 281." in html
        assert "Step 280." in html
        assert "Step 279." not in html
        assert "Step 479." in html
        assert "Step 480." not in html


async def test_a_page_that_heavy_events_cut_short_leads_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async with desk() as ledger:
        await ledger.started_goal("Port it", "a")
        await ledger.push("a", *((seq, "comment", {"body": f"Step {seq}."}) for seq in range(9)))
        store = ledger.services.store
        read_stream = store.read_stream

        async def heavy(stream: str, *, limit: int = 1000, **more: Any) -> list[Recorded]:
            return await read_stream(stream, limit=min(limit, 5), **more)

        monkeypatch.setattr(store, "read_stream", heavy)
        assert "from=4" in await ledger.page("/sessions/a")
        assert "Step 8." in await ledger.page("/sessions/a?from=4")


async def test_one_event_is_shown_whole() -> None:
    async with desk() as ledger:
        await ledger.started_goal("Port it", "a")
        await ledger.push("a", (3, "comment", {"body": "x" * 50_000}))
        assert "x" * 50_000 in await ledger.page("/sessions/a?whole=3")
        missing = await ledger.http.get("/sessions/a?whole=2", headers={"Accept": "text/html"})
        assert missing.status_code == 404
        assert "There is nothing here" in missing.text


async def test_who_was_logged_in_is_told_why_the_login_is_asked_again() -> None:
    async with desk() as ledger:
        browser = httpx.AsyncClient(transport=ledger.http._transport, base_url="http://ledger")
        assert (await browser.get("/goals")).headers["location"] == "/login?next=%2Fgoals"
        browser.cookies.set("ledgerd", "stale")
        sent_to = (await browser.get("/goals")).headers["location"]
        assert sent_to == "/login?next=%2Fgoals&again=1"
        assert "Your login has run out" in (await browser.get(sent_to)).text
