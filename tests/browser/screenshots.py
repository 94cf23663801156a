"""Takes pictures of every page, wide and narrow, light and dark: python -m tests.browser.screenshots [FOLDER]"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser

from tests.browser.driving import OWNER_TOKEN, chromium, serving
from tests.browser.sample import tell

WIDE, NARROW = 1280, 390
HEIGHT = 900


def take(folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as store, serving(Path(store)) as ledger, chromium() as browser:
        empty = _pictures(browser, ledger.url, {"empty-home": "/", "empty-goals": "/goals"}, folder, ("light",))
        paths = {"home": "/", "goals": "/goals", "tasks": "/tasks", "missing": "/goals/none", **tell(ledger)}
        return empty + _pictures(browser, ledger.url, paths, folder, ("light", "dark"))


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
                if "/goals/none" not in path:
                    page.wait_for_selector("#live.live")
                taken.append(folder / f"{name}-{scheme}-{width}.png")
                page.screenshot(path=taken[-1], full_page=True)
            context.close()
    return taken


if __name__ == "__main__":
    for path in take(Path(sys.argv[1] if len(sys.argv) > 1 else "screenshots")):
        print(path)
