from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.driving import OWNER_TOKEN, WAIT_MS, Ledger, chromium, serving


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=WAIT_MS)
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    folder: Path = tmp_path_factory.mktemp("ledger")
    with serving(folder) as ledger:
        yield ledger


@pytest.fixture
def visitor(browser: Browser, server: Ledger) -> Iterator[Page]:
    """A page of somebody who has not logged in. Scripts that fail, dialogs and breaches of the content policy fail
    the test."""
    context = browser.new_context(base_url=server.url)
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(f"script failed: {error}"))
    page.on("console", lambda message: faults.append(message.text) if "Content Security" in message.text else None)

    def refuse(dialog: object) -> None:
        faults.append(f"a dialog opened: {dialog}")
        dialog.dismiss()  # type: ignore[attr-defined]

    page.on("dialog", refuse)
    try:
        yield page
    finally:
        context.close()
    assert faults == []


@pytest.fixture
def owner(visitor: Page) -> Page:
    """A page of the owner, logged in by a login link."""
    visitor.goto(f"/login#{OWNER_TOKEN}")
    visitor.wait_for_url("/")
    return visitor
