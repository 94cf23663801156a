"""The page of a loop in a browser: it follows the loop, its owner halts it there, and it runs no script."""

from __future__ import annotations

from datetime import UTC, datetime

from playwright.sync_api import Page, expect

from tests.browser.driving import Ledger
from tests.browser.loops import looping

HOSTILE = "<script>window.__pwned = 1</script><img src=x onerror=\"window.__pwned = 2; alert('x')\">\x1b[1;1H"


def test_a_loop_is_followed_halted_and_resumed_on_its_page(server: Ledger, owner: Page) -> None:
    loop = looping(server, "nightly", "nightly", "mole", datetime.now(UTC))
    owner.goto("/loops/nightly")
    expect(owner.locator("#sentence")).to_have_text("Goes on at its next tick.")
    expect(owner.locator("#live.live")).to_be_visible()
    owner.get_by_text("Halt …").click()
    reason = owner.get_by_label("Reason")
    reason.fill("It is late.")
    loop.works(1, 5)
    loop.judges(1, 0.5, HOSTILE)
    expect(owner.locator("#round-1")).to_contain_text("<script>window.__pwned = 1</script>")
    expect(owner.locator("#scores circle")).to_have_count(1)
    expect(reason).to_have_value("It is late.")  # the page was patched around what is being written
    owner.get_by_role("button", name="Halt it").click()
    expect(owner.locator("#requests")).to_contain_text("owner asked it to halt: It is late.")
    [request] = server.get(f"/api/saddle/requests?session_id={loop.id}")["requests"]
    loop.halts("human_intervention", detail=HOSTILE, request=request["seq"])
    expect(owner.locator("#sentence")).to_have_text("Halted: A person has to decide.")
    expect(owner.locator("#requests")).to_have_count(0)
    owner.get_by_role("button", name="Resume").click()
    expect(owner.locator("#requests")).to_contain_text("owner asked it to resume")
    assert owner.evaluate("window.__pwned") is None
    assert owner.locator("main script, main img").count() == 0
    server.post(f"/api/tasks/{loop.task_id}/cancel")
    expect(owner.locator("#sentence")).to_have_text("Cancelled with its task.")
