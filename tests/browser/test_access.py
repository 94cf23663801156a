"""What axe finds on the pages, light and wide, dark and narrow: nothing that is serious."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from tests.browser.driving import OWNER_TOKEN, WAIT_MS, Ledger
from tests.browser.incidents import tell_incidents
from tests.browser.loops import tell_loops
from tests.browser.runs import tell_run
from tests.browser.sample import tell

SERIOUS = ("serious", "critical")
UNFOLD = "document.querySelectorAll('details').forEach(each => each.open = true)"


@pytest.fixture(scope="module")
def places(server: Ledger) -> dict[str, str]:
    daemons = {**tell_run(server), **tell_loops(server), **tell_incidents(server)}
    looked_at = ("run", "loops", "loop-halted", "incidents-all", "incident")
    derived = {name: daemons[name] for name in looked_at}
    return {"home": "/", "goals": "/goals", "tasks": "/tasks", "missing": "/goals/none", **tell(server), **derived}


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_no_page_keeps_anybody_out(
    browser: Browser, server: Ledger, places: dict[str, str], theme: str, width: int
) -> None:
    context = browser.new_context(base_url=server.url, color_scheme=theme, viewport={"width": width, "height": 900})  # type: ignore[arg-type]
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    try:
        page.goto("/login")
        found = serious(page, "login")
        page.goto(f"/login?again#{OWNER_TOKEN}")
        page.wait_for_url("/")
        for name, path in places.items():
            page.goto(path)
            page.evaluate(UNFOLD)
            found += serious(page, name)
    finally:
        context.close()
    assert found == []


def serious(page: Page, name: str) -> list[str]:
    violations = Axe().run(page).response["violations"]
    return [
        f"{name}: {one['id']}: {node['html'][:160]} {node.get('failureSummary', '')[:200]}"
        for one in violations
        if one["impact"] in SERIOUS
        for node in one["nodes"]
    ]


def test_the_main_journey_takes_no_mouse(browser: Browser, server: Ledger, places: dict[str, str]) -> None:
    context = browser.new_context(base_url=server.url)
    page = context.new_page()
    try:
        page.goto(f"/login#{OWNER_TOKEN}")
        page.wait_for_url("/")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "To the content"
        page.keyboard.press("Enter")
        for _ in range(20):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.textContent").startswith("May I run the migration"):
                break
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"
        page.keyboard.press("Enter")
        page.wait_for_url(f"**{places['waiting-goal']}")
    finally:
        context.close()
