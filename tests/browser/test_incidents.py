"""The page of incidents in a browser: it follows the sweeps, and an owner decides without losing what is unfolded."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from projections.incidents_board import incident_id
from tests.browser.driving import Ledger
from tests.browser.incidents import swept

HOSTILE = "<script>window.__pwned = 1</script><img src=x onerror=\"window.__pwned = 2; alert('x')\">\x1b[1;1H"


def filed(mark: str, title: str) -> tuple[str, dict[str, object]]:
    texts = {"title": title, "what": HOSTILE, "cost": HOSTILE, "lesson": HOSTILE, "category": HOSTILE}
    behind = {"source": HOSTILE, "key": HOSTILE, "session_id": "none", "turns": [{"seq": 1, "snippet": HOSTILE}]}
    return "incident.filed", {
        "register": "browser",
        "fingerprint": mark,
        "severity": "HIGH",
        "date": "2025-11-30",
        "sessions": [behind],
        **texts,
    }


def test_a_sweep_is_followed_and_an_incident_acknowledged_where_it_stands(server: Ledger, owner: Page) -> None:
    owner.goto("/incidents")
    expect(owner.locator("#live.live")).to_be_visible()
    swept(server, "browser-1", [filed("one", f"First {HOSTILE}")])
    first = owner.locator(f"#i-{incident_id('browser', 'one')}")
    expect(first).to_contain_text("First <script>window.__pwned = 1</script>")
    first.locator("summary").first.click()
    swept(server, "browser-2", [filed("two", "Second")])
    expect(owner.locator(f"#i-{incident_id('browser', 'two')}")).to_contain_text("Second")
    expect(first.locator("dl.words")).to_be_visible()
    first.get_by_role("button", name="Acknowledge").click()
    expect(first).to_contain_text("acknowledged by owner")
    assert owner.evaluate("window.__pwned") is None
    assert owner.locator("main script, main img").count() == 0
    assert owner.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
