"""Incidents through the API, and as feeds."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlparse
from xml.etree import ElementTree

import httpx
import pytest

from ledger.events.times import parse_instant
from ledger.http import incidents_feeds
from tests.unit.http.in_process import TOKEN, Desk, desk
from tests.unit.http.sweeping import again, incident, name_of, sweep

ATOM = "{http://www.w3.org/2005/Atom}"
HOSTILE = "]]></title><script>alert(1)</script>&\x00\x1b[31m\ufffe\u202e"


@pytest.fixture
async def ledger() -> AsyncIterator[Desk]:
    async with desk() as made:
        yield made


# /api/incidents


async def test_an_incident_leads_to_the_exact_turns_of_the_sessions_that_are_on_the_ledger(ledger: Desk) -> None:
    away = {"source": "codex", "key": "/else/where:9", "session_id": "s2", "turns": [{"seq": 5}]}
    own = {"source": "odd", "key": "k", "session_id": "@task/sweep-one"}
    kind, filed = incident()
    await sweep(ledger, "one", (kind, {**filed, "sessions": [*filed["sessions"], away, own]}))
    told = await ledger.get(f"/api/incidents/{name_of()}")
    assert [session["href"] for session in told["sessions"]] == [None, None, None]
    task = (await ledger.post("/api/tasks", title="work"))["id"]
    await ledger.open("s1", task)
    first, second, third = (await ledger.get(f"/api/incidents/{name_of()}"))["sessions"]
    assert (first["href"], first["turns"][0]["href"]) == ("/sessions/s1", "/sessions/s1?around=3#e-3")
    assert (second["href"], second["key"], second["turns"][0]["href"]) == (None, "/else/where:9", None)
    assert third["href"] is None, "a stream of the ledger's own is nobody's session"


async def test_the_list_tells_incidents_registers_exclusions_and_the_trend(ledger: Desk) -> None:
    plan = {
        "candidates": [{"id": "C1", "session": "claude s1", "rule": "kill", "snippet": "kill 1"}],
        "excluded": [{"candidates": ["C1"], "reason": "its own process"}],
    }
    unreadable = ("session.unreadable", {"source": "claude", "key": "k9", "why": "no JSON"})
    verdict = ("judge.verdict", {"verdict": "v", "plan": plan})
    await sweep(ledger, "one", unreadable, verdict, incident(), incident("f2", severity="LOW"), sessions_unreadable=1)
    await sweep(ledger, "two", again(), register="other")
    told = await ledger.get("/api/incidents")
    assert [(one["severity"], one["times"]) for one in told["items"]] == [("HIGH", 2), ("LOW", 1)]
    assert told["counts"]["HIGH"] == {"open": 1, "acknowledged": 0, "resolved": 0}
    assert [(one["register"], one["unscored"]) for one in told["registers"]] == [("other", 0), ("r", 1)]
    assert told["registers"][1]["unscored_sessions"] == [{"source": "claude", "key": "k9", "why": "no JSON"}]
    [excluded] = told["exclusions"]
    assert (excluded["reason"], excluded["candidates"][0]["rule"]) == ("its own process", "kill")
    assert sum(week["HIGH"] for week in told["trend"]) == 1
    assert told["trend"][-1]["runs"] == 2
    only = await ledger.get("/api/incidents?register=other")
    assert (only["items"], only["exclusions"], only["trend"][-1]["runs"]) == ([], [], 1)


async def test_a_list_is_read_page_by_page_and_filtered(ledger: Desk) -> None:
    await sweep(ledger, "one", *(incident(f"f{n}", severity="LOW", date=f"2025-11-{n:02}") for n in range(1, 6)))
    first = await ledger.get("/api/incidents?limit=3")
    rest = await ledger.get(f"/api/incidents?limit=3&after={first['next']}")
    dates = [one["date"][-2:] for one in (*first["items"], *rest["items"])]
    assert (dates, rest["next"]) == (["05", "04", "03", "02", "01"], None)
    await ledger.post(f"/api/incidents/{name_of('f1')}/resolve", reason="done")
    assert len((await ledger.get("/api/incidents?status=unresolved"))["items"]) == 4
    [resolved] = (await ledger.get("/api/incidents?status=resolved"))["items"]
    assert resolved["decisions"][0]["reason"] == "done"
    for query in ("status=well", "severity=high", "after=none", "limit=0", "limit=999"):
        assert (await ledger.http.get(f"/api/incidents?{query}")).status_code == 422, query


async def test_a_decision_answers_with_what_is_open_next(ledger: Desk) -> None:
    await sweep(ledger, "one", incident())
    path = f"/api/incidents/{name_of()}"
    told = await ledger.post(f"{path}/acknowledge", reason="I look into it")
    assert (told["status"], list(told["actions"])) == ("acknowledged", ["resolve", "reopen"])
    assert told["actions"]["resolve"] == {"method": "POST", "href": f"{path}/resolve"}
    assert (told["decisions"][0]["by"], told["decisions"][0]["reason"]) == ("owner", "I look into it")
    refused = await ledger.http.post(f"{path}/acknowledge")
    assert (refused.status_code, refused.json()["code"]) == (409, "not_offered")
    missing = await ledger.http.post("/api/incidents/none/resolve")
    assert (missing.status_code, missing.json()["code"]) == (404, "unknown_incident")
    _, reader = await ledger.services.access.mint("reader", "rita")
    answer = await ledger.http.post(f"{path}/resolve", headers={"Authorization": f"Bearer {reader}"})
    assert answer.status_code == 403


async def test_one_incident_in_a_list_names_few_sessions_and_on_its_own_all(ledger: Desk) -> None:
    many = [{"source": "claude", "key": f"k{n}", "session_id": f"s{n}"} for n in range(60)]
    await sweep(ledger, "one", incident(sessions=many))
    [listed] = (await ledger.get("/api/incidents"))["items"]
    assert (len(listed["sessions"]), listed["session_count"]) == (20, 60)
    assert len((await ledger.get(f"/api/incidents/{name_of()}"))["sessions"]) == 60


# Feeds


async def feed(ledger: Desk, name: str) -> httpx.Response:
    return (await ledger.http.get(f"/incidents.{name}")).raise_for_status()


def atom(text: bytes) -> ElementTree.Element:
    """The feed, once it holds what RFC 4287 asks of each feed and each entry."""
    root = ElementTree.fromstring(text)  # noqa: S314 — made by us
    assert root.tag == f"{ATOM}feed"
    assert root.find(f"{ATOM}author/{ATOM}name") is not None
    for one in (root, *root.findall(f"{ATOM}entry")):
        for name in ("id", "title", "updated"):
            assert len(one.findall(f"{ATOM}{name}")) == 1
        assert (one.findtext(f"{ATOM}id") or "").startswith("urn:uuid:")
        assert parse_instant(one.findtext(f"{ATOM}updated")) is not None
        links = one.findall(f"{ATOM}link")
        assert links
        assert all(urlparse(link.get("href")).scheme in ("http", "https") for link in links)
        for text in one.findall(f"{ATOM}title") + one.findall(f"{ATOM}content"):
            assert len(text) == 0, "text holds no markup"
    return root


def json_feed(text: bytes) -> Any:
    """The feed, once it holds what JSON Feed 1.1 asks of it."""
    found = json.loads(text)
    assert found["version"] == "https://jsonfeed.org/version/1.1"
    assert isinstance(found["title"], str)
    for one in found["items"]:
        assert isinstance(one["id"], str)
        assert isinstance(one["content_text"], str)
        assert urlparse(one["url"]).scheme
        assert parse_instant(one["date_published"]) is not None
    return found


async def test_both_feeds_tell_the_newest_incidents_with_links_that_hold_anywhere(ledger: Desk) -> None:
    await sweep(ledger, "one", incident())
    ledger.wait(60)
    await sweep(ledger, "two", incident("f2", severity="LOW", title="A small one"))
    ledger.wait(60)
    await sweep(ledger, "three", again())
    answer = await feed(ledger, "atom")
    root = atom(answer.content)
    assert answer.headers["content-type"].startswith("application/atom+xml")
    titles = [entry.findtext(f"{ATOM}title") for entry in root.findall(f"{ATOM}entry")]
    assert titles == ["HIGH: The database was removed", "LOW: A small one"]
    answer = await feed(ledger, "json")
    found = json_feed(answer.content)
    assert answer.headers["content-type"].startswith("application/feed+json")
    assert [one["title"] for one in found["items"]] == titles
    first = found["items"][0]
    assert first["url"] == f"http://ledger/incidents/{name_of()}"
    assert first["tags"] == ["HIGH", "data-loss", "open"]
    assert "2 times, last on 2025-12-01. Now open." in first["content_text"]
    entry = root.find(f"{ATOM}entry")
    assert entry is not None
    assert entry.findtext(f"{ATOM}id") == first["id"]


async def test_an_entry_keeps_its_id_and_is_updated_when_something_is_decided(ledger: Desk) -> None:
    await sweep(ledger, "one", incident())
    [before] = json_feed((await feed(ledger, "json")).content)["items"]
    ledger.wait(60)
    await ledger.post(f"/api/incidents/{name_of()}/resolve")
    [after] = json_feed((await feed(ledger, "json")).content)["items"]
    assert after["id"] == before["id"]
    assert after["date_published"] == before["date_published"]
    assert after["date_modified"] > before["date_modified"]


async def test_a_feed_without_incidents_is_valid_too(ledger: Desk) -> None:
    assert atom((await feed(ledger, "atom")).content).findall(f"{ATOM}entry") == []
    assert json_feed((await feed(ledger, "json")).content)["items"] == []


async def test_nothing_that_an_agent_wrote_breaks_a_feed_or_is_markup_in_it(ledger: Desk) -> None:
    texts = dict.fromkeys(("title", "what", "cost", "lesson", "category"), HOSTILE)
    behind = [{"source": HOSTILE, "key": HOSTILE, "turns": [{"seq": 1, "snippet": HOSTILE}]}]
    await sweep(ledger, "one", incident(sessions=behind, **texts))
    root = atom((await feed(ledger, "atom")).content)
    content = root.findtext(f"{ATOM}entry/{ATOM}content") or ""
    assert "<script>alert(1)</script>" in content
    assert not re.search("[\x00-\x08\x1b\u202e]", content)
    assert json_feed((await feed(ledger, "json")).content)["items"][0]["title"].startswith(
        "HIGH: ]]></title><script>"
    )


async def test_a_feed_is_bounded(ledger: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incidents_feeds, "ENTRIES_MAX", 2)
    await sweep(ledger, "one", *(incident(f"f{n}") for n in range(4)))
    assert len(json_feed((await feed(ledger, "json")).content)["items"]) == 2


async def test_a_feed_is_read_with_a_token_as_bearer_or_as_the_password_of_basic(ledger: Desk) -> None:
    def basic(text: str) -> str:
        return f"Basic {base64.b64encode(text.encode()).decode()}"

    async def status(**headers: str) -> int:
        async with httpx.AsyncClient(transport=ledger.http._transport, base_url="http://ledger") as http:
            answer = await http.get("/incidents.atom", headers=headers)
        if answer.status_code == 401:
            assert answer.headers["www-authenticate"] == 'Bearer, Basic realm="ledgerd", charset="UTF-8"'
            assert answer.json()["code"] == "unauthenticated"
        return answer.status_code

    _, saddle = await ledger.services.access.mint("saddle", "anvil")
    _, reader = await ledger.services.access.mint("reader", "rita")
    assert await status() == 401
    assert await status(authorization=basic(f"anybody:{reader}")) == 200
    assert await status(authorization=f"Bearer {reader}") == 200
    assert await status(authorization=basic(f":{TOKEN}")) == 200
    assert await status(authorization=basic(f"anybody:{saddle}")) == 403
    for wrong in (basic("anybody:nonsense"), basic("no colon"), "Basic ///", "Basic w7/Dvw==", "Digest x"):
        assert await status(authorization=wrong) == 401, wrong
    elsewhere = await ledger.http.get("/api/incidents", headers={"Authorization": basic(f"x:{reader}")})
    assert elsewhere.status_code == 401, "only feeds take Basic"


async def test_a_feed_that_did_not_change_is_not_sent_again(ledger: Desk) -> None:
    await sweep(ledger, "one", incident())
    etag = (await feed(ledger, "json")).headers["etag"]
    assert (await ledger.http.get("/incidents.json", headers={"If-None-Match": etag})).status_code == 304
    await sweep(ledger, "two", again())
    assert (await ledger.http.get("/incidents.json", headers={"If-None-Match": etag})).status_code == 200
