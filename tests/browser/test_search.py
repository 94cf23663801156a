from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import Page, expect

from tests.browser.driving import Ledger

HOSTILE = "<script>window.__pwned = 1</script><img src=x onerror=\"window.__pwned = 2; alert('x')\">"
TAKEN_IN_S_MAX = 20


def taken_in(server: Ledger) -> None:
    """Waits until the search index has taken in all that there is."""
    deadline = time.monotonic() + TAKEN_IN_S_MAX
    while server.get("/api/search?q=x")["behind"]:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_slash_goes_to_the_search_and_a_hit_to_its_place(server: Ledger, owner: Page) -> None:
    server.started_goal("Weld it", "weld/1")
    server.push("weld/1", (7, "comment", {"body": "The flange weld holds."}))
    taken_in(server)
    owner.keyboard.press("/")
    expect(owner.get_by_label("Search", exact=True)).to_be_focused()
    owner.keyboard.type("flange")
    owner.keyboard.press("Enter")
    owner.wait_for_url("/search?q=flange")
    expect(owner.locator(".hits mark")).to_have_text("flange")
    owner.get_by_role("link", name="The flange weld holds.").click()
    owner.wait_for_url("/sessions/weld%2F1?from=7#e-7")
    expect(owner.locator("#e-7")).to_be_in_viewport()


def test_a_slash_in_a_field_is_a_slash(owner: Page) -> None:
    owner.goto("/search")
    words = owner.get_by_label("Words")
    words.press("a")
    words.press("/")
    expect(words).to_have_value("a/")


def test_filters_stand_in_the_address(owner: Page) -> None:
    owner.goto("/search")
    owner.get_by_label("Kind").select_option("error")
    owner.get_by_label("Agent").fill("codex")
    owner.get_by_role("button", name="Search").click()
    expect(owner).to_have_url(re.compile(r"kind=error.*agent=codex"))
    expect(owner.get_by_label("Kind")).to_have_value("error")
    expect(owner.get_by_label("Agent")).to_have_value("codex")


def test_what_agents_write_runs_no_script_in_search_or_trends(server: Ledger, owner: Page) -> None:
    project = str(server.post("/api/projects", {"title": HOSTILE})["id"])
    opening = {"session_id": "hostile-found", "agent": HOSTILE, "host": HOSTILE, "model": HOSTILE}
    server.post("/api/saddle/sessions", {**opening, "task": {"title": HOSTILE, "project_id": project}})
    usage = {"message_id": "m", "model": HOSTILE, "cost_usd": 1}
    server.push("hostile-found", (0, "comment", {"body": f"unmistakable {HOSTILE}\x01\x02"}), (1, "usage", usage))
    taken_in(server)
    owner.goto("/search?q=unmistakable")
    expect(owner.locator(".hits")).to_contain_text("<script>window.__pwned = 1</script>")
    assert owner.evaluate("window.__pwned") is None
    owner.goto("/trends")
    expect(owner.locator("#cost")).to_contain_text("<script>")
    assert owner.evaluate("window.__pwned") is None
    assert owner.locator("main script, main img, main [style]").count() == 0


@pytest.mark.parametrize("width", [320, 390, 1280])
@pytest.mark.parametrize("path", ["/search", "/search?q=wwwwww", "/trends", "/trends?days=365"])
def test_neither_search_nor_trends_is_wider_than_its_window(
    server: Ledger, owner: Page, width: int, path: str
) -> None:
    session = f"wide-{width}-{path}"
    server.started_goal("W" * 180, session)
    server.push(session, (0, "comment", {"body": "w" * 500}))
    taken_in(server)
    owner.set_viewport_size({"width": width, "height": 800})
    owner.goto(path)
    assert owner.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_a_plot_says_what_it_shows(server: Ledger, owner: Page) -> None:
    owner.goto("/trends")
    plot = owner.get_by_role("img", name="Sessions and failures per day")
    expect(plot).to_be_visible()
    font = plot.locator("text").first.evaluate("text => text.getBoundingClientRect().height")
    assert font >= 10
