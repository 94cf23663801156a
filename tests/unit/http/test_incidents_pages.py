"""The pages of incidents: what they tell, in which order, and what an owner decides there."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import httpx
import pytest

from ledger.http.incidents_rows import headline
from tests.unit.http.in_process import Desk, desk, said
from tests.unit.http.sweeping import again, incident, name_of, sweep

HOSTILE = "</dd><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31mred\x1b[0m # heading\n[a](javascript:b)"


@pytest.fixture
async def ledger() -> AsyncIterator[Desk]:
    async with desk() as made:
        yield made


async def decide(http: httpx.AsyncClient, action: str, **fields: str) -> httpx.Response:
    page = (await http.get(f"/incidents/{name_of()}")).text
    [csrf] = set(re.findall(r'name="csrf" value="([^"]*)"', page))
    return await http.post(f"/incidents/{name_of()}/{action}", data={"csrf": csrf, **fields})


async def test_a_page_of_incidents_stays_small_whatever_a_model_wrote(ledger: Desk) -> None:
    texts = dict.fromkeys(("title", "what", "cost", "lesson", "category"), "W" * 500_000)
    await sweep(ledger, "one", incident(**texts))
    for path in ("/incidents", f"/incidents/{name_of()}"):
        page = await ledger.page(path)
        assert "WWW" in page
        assert len(page) < 60_000


async def test_the_home_page_says_in_a_line_which_high_incidents_are_unresolved(ledger: Desk) -> None:
    await sweep(ledger, "one", incident("f2", severity="LOW"))
    assert 'id="high"' not in await ledger.page("/")
    await sweep(ledger, "two", incident(), incident("f3", title="Another"))
    home = await ledger.page("/")
    assert "Two new HIGH incidents" in said(home)
    assert 'href="/incidents#of-high">Two HIGH incidents are unresolved, two not acknowledged yet.</a>' in home
    http = await ledger.browser()
    await decide(http, "acknowledge")
    assert "Two HIGH incidents are unresolved, one not acknowledged yet." in (await http.get("/")).text
    await decide(http, "resolve")
    await http.aclose()
    home = said(await ledger.page("/"))
    assert "One HIGH incident is unresolved, not acknowledged yet." in home
    assert (await ledger.get("/api/fleet"))["incidents"]["HIGH"] == {"open": 1, "acknowledged": 0, "resolved": 1}


async def test_the_page_tells_the_register_by_severity_with_what_is_behind_each(ledger: Desk) -> None:
    task = (await ledger.post("/api/tasks", title="work"))["id"]
    await ledger.open("s1", task)
    await sweep(ledger, "one", incident("f2", severity="LOW", title="A small one"), incident())
    await sweep(ledger, "two", again())
    page = await ledger.page("/incidents")
    text = said(page)
    assert text.index("HIGH 1") < text.index("The database was removed") < text.index("LOW 1") < text.index("A small")
    assert "Two incidents are unresolved, one HIGH." in text
    assert "What An agent removed the folder of the database. Cost A day of orders. Lesson Agents work" in text
    assert "× 2" in text
    assert "2025-12-01 Removed once more" in text
    assert 'href="/sessions/s1?around=3#e-3">#3</a>' in page
    assert "remove-tree rm -rf /srv/db" in text
    assert 'id="incidents-trend"' in page
    assert "Swept 0 s ago : 1 incident filed" in text


async def test_what_could_not_be_scored_is_counted_and_never_called_well(ledger: Desk) -> None:
    unreadable = ("session.unreadable", {"source": "claude", "key": "k9", "why": "not JSON"})
    await sweep(ledger, "one", unreadable, sessions_unreadable=3, sources_failed=1)
    text = said(await ledger.page("/incidents"))
    assert "No incident that was found is unresolved. Three sessions could not be scored." in text
    assert "One source could not be looked at." in text
    assert "3 could not be scored" in text
    assert "claude k9 not JSON" in text
    assert "healthy" not in headline({}, [])


async def test_exclusions_stand_there_with_their_reasons(ledger: Desk) -> None:
    plan = {
        "candidates": [{"id": "C1", "session": "claude s1", "rule": "kill", "snippet": "kill -9 1", "seq": 4}],
        "excluded": [{"candidates": ["C1"], "reason": "It ended a process of its own.", "duplicate_of": "E01"}],
        "unmentioned": ["C1"],
    }
    await sweep(ledger, "one", ("judge.verdict", {"plan": plan}))
    text = said(await ledger.page("/incidents"))
    assert "Excluded 2" in text
    assert "It ended a process of its own. Excluded, as one that is there already" in text
    assert "#4 kill kill -9 1 claude s1" in text
    assert "The judge said nothing of it" in text


async def test_before_any_sweep_the_page_says_how_to_begin(ledger: Desk) -> None:
    text = said(await ledger.page("/incidents"))
    assert "No sweep has told anything yet." in text
    assert "ledgerd sweep init" in text


async def test_an_owner_acknowledges_and_resolves_on_the_page_and_all_is_told_of_who_and_when(ledger: Desk) -> None:
    await sweep(ledger, "one", incident())
    ann = await ledger.browser(name="ann")
    answer = await decide(ann, "acknowledge", back="list")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/incidents#i-{name_of()}")
    answer = await decide(ann, "resolve", reason="Restored from the backup.")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/incidents/{name_of()}")
    page = await ledger.page(f"/incidents/{name_of()}")
    text = said(page)
    assert "HIGH, resolved by ann" in text
    assert text.index("Resolved by ann") < text.index("Restored from the backup.") < text.index("Acknowledged by ann")
    assert f'action="/incidents/{name_of()}/reopen"' in page
    assert f'action="/incidents/{name_of()}/resolve"' not in page
    assert "The database was removed" not in said(await ledger.page("/incidents"))
    assert "The database was removed" in said(await ledger.page("/incidents?status=resolved"))
    ledger.wait(60)
    await sweep(ledger, "two", again())
    text = said(await ledger.page("/incidents"))
    assert "The database was removed × 2 2025-11-30 to 2025-12-01 · data-loss · happened again after" in text
    await ann.aclose()


async def test_a_decision_needs_an_owner_who_was_shown_the_page(ledger: Desk) -> None:
    await sweep(ledger, "one", incident())
    ann, rita = await ledger.browser(name="ann"), await ledger.browser("reader", "rita")
    assert "<button" not in re.sub(r"<header.*?</header>", "", (await rita.get("/incidents")).text, flags=re.DOTALL)
    path = f"/incidents/{name_of()}/resolve"
    assert (await ann.post(path, data={"csrf": "made-up"})).status_code == 403
    csrf = re.findall(r'name="csrf" value="([^"]*)"', (await rita.get("/incidents")).text)[0]
    assert (await rita.post(path, data={"csrf": csrf})).status_code == 403
    assert (await ledger.get(f"/api/incidents/{name_of()}"))["status"] == "open"
    assert (await decide(ann, "reopen")).status_code == 409
    await ann.aclose()
    await rita.aclose()


async def test_nothing_that_an_agent_or_a_model_wrote_is_markup(ledger: Desk) -> None:
    turns = [{"seq": 1, "rule": HOSTILE, "snippet": HOSTILE}]
    behind = [{"source": HOSTILE, "key": HOSTILE, "session_id": HOSTILE[:150], "turns": turns}]
    texts = dict.fromkeys(("title", "what", "cost", "lesson", "category", "register", "fingerprint"), HOSTILE)
    plan = {
        "candidates": [{"id": "C1", "session": HOSTILE, "rule": HOSTILE, "snippet": HOSTILE}],
        "excluded": [{"candidates": ["C1"], "reason": HOSTILE}],
        "rejected": [{"candidates": ["C1"], "why": HOSTILE, "title": HOSTILE}],
    }
    unreadable = ("session.unreadable", {"source": HOSTILE, "key": HOSTILE, "why": HOSTILE})
    await sweep(
        ledger, "one", unreadable, ("judge.verdict", {"plan": plan}), incident(sessions=behind, **texts),
        again(title=HOSTILE, register=HOSTILE, fingerprint=HOSTILE), register=HOSTILE, sessions_unreadable=1,
    )  # fmt: skip
    [one] = (await ledger.get("/api/incidents"))["items"]
    await ledger.post(f"/api/incidents/{one['id']}/acknowledge", reason=HOSTILE)
    for path in ("/incidents", f"/incidents/{one['id']}"):
        page = await ledger.page(path)
        assert "<script>alert" not in page
        assert "<img" not in page
        assert 'href="javascript' not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
        assert "\x1b" not in page


async def test_a_long_list_goes_on_on_the_next_page(ledger: Desk) -> None:
    found = [incident(f"f{n}", severity="LOW", title=f"Number {n:02}", date="2025-11-01") for n in range(53)]
    await sweep(ledger, "one", *found)
    page = await ledger.page("/incidents")
    [following] = re.findall(r'rel="next" href="([^"]*)"', page)
    rest = await ledger.page(following.replace("&amp;", "&"))
    numbers = set(re.findall(r"Number \d\d", page)) | set(re.findall(r"Number \d\d", rest))
    assert (page.count('id="i-'), rest.count('id="i-'), len(numbers)) == (50, 3, 53)


@pytest.mark.parametrize(
    ("unresolved", "said"),
    [
        ({}, "No incident that was found is unresolved."),
        ({"LOW": {"open": 1}}, "One incident is unresolved."),
        (
            {"HIGH": {"open": 1, "acknowledged": 1}, "LOW": {"acknowledged": 1}},
            "Three incidents are unresolved, two HIGH, one not acknowledged yet.",
        ),
    ],
)
def test_the_headline_says_what_is_to_be_seen_to(unresolved: dict[str, dict[str, int]], said: str) -> None:
    nothing = dict.fromkeys(("open", "acknowledged", "resolved"), 0)
    counts = {severity: {**nothing, **unresolved.get(severity, {})} for severity in ("HIGH", "MEDIUM", "LOW")}
    swept = {"unscored": 0, "looked_at": {"counts": {}}}
    assert headline(counts, [swept]) == said
    blind = {"unscored": None, "looked_at": None}
    assert headline(counts, [swept, blind]) == f"{said} Of one register no sweep has looked yet."
