"""Takes pictures of every page, wide and narrow, light and dark: python -m tests.browser.screenshots [FOLDER]"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser

from tests.browser.driving import OWNER_TOKEN, Ledger, chromium, serving
from tests.browser.history import tell_history
from tests.browser.incidents import tell_incidents
from tests.browser.loops import tell_loops
from tests.browser.runs import tell_run
from tests.browser.sample import tell

WIDE, NARROW = 1280, 390
HEIGHT = 900
DERIVED_S_MAX = 60
DERIVED = {
    "search-empty": "/search",
    "search": "/search?q=grammar+port",
    "search-filtered": "/search?kind=error&status=failed",
    "search-nothing": "/search?q=nowhere",
    "trends": "/trends",
    "trends-90": "/trends?days=90",
}


def take(folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as store, serving(Path(store)) as ledger, chromium() as browser:
        empty = _pictures(browser, ledger.url, {"empty-home": "/", "empty-goals": "/goals"}, folder, ("light",))
        paths = {"home": "/", "goals": "/goals", "tasks": "/tasks", "missing": "/goals/none", **tell(ledger)}
        pictures = empty + _pictures(browser, ledger.url, paths, folder, ("light", "dark"))
        pictures += _pictures(browser, ledger.url, tell_run(ledger), folder, ("light", "dark"))
        pictures += _pictures(browser, ledger.url, tell_loops(ledger), folder, ("light", "dark"))
        pictures += _pictures(browser, ledger.url, tell_incidents(ledger), folder, ("light", "dark"))
        tell_history(ledger)
        _wait_until_derived(ledger)
        return pictures + _pictures(browser, ledger.url, DERIVED, folder, ("light", "dark"))


def _wait_until_derived(ledger: Ledger) -> None:
    """The search index and the trends follow the log in the background."""
    deadline = time.monotonic() + DERIVED_S_MAX
    while ledger.get("/api/search?q=grammar")["behind"] and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1)


def _pictures(
    browser: Browser, url: str, paths: dict[str, str], folder: Path, schemes: tuple[str, ...]
) -> list[Path]:
    taken = []
    for scheme in schemes:
        for width in (WIDE, NARROW):
            context = browser.new_context(
                base_url=url, color_scheme=scheme, viewport={"width": width, "height": HEIGHT}
            )
            page = context.new_page()
            page.goto("/login")
            page.screenshot(path=folder / f"login-{scheme}-{width}.png")
            page.goto(f"/login?again#{OWNER_TOKEN}")
            page.wait_for_url("/")
            for name, path in paths.items():
                page.goto(path)
                if page.locator("body[data-root]").count():
                    page.wait_for_selector("#live.live")
                taken.append(folder / f"{name}-{scheme}-{width}.png")
                # a window as high as the page, so that what sticks to its bottom does not stand in the middle
                height = int(page.evaluate("document.documentElement.scrollHeight"))
                page.set_viewport_size({"width": width, "height": max(height, HEIGHT)})
                page.screenshot(path=taken[-1])
                page.set_viewport_size({"width": width, "height": HEIGHT})
            context.close()
    return taken


if __name__ == "__main__":
    for path in take(Path(sys.argv[1] if len(sys.argv) > 1 else "screenshots")):
        print(path)
