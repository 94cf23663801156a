"""The page of a run in a browser: it follows the run, lets its owner write in peace, and runs no script."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from projections.remediation import facts, words
from tests.browser.driving import Ledger
from tests.browser.runs import started

HOSTILE = "<script>window.__pwned = 1</script><img src=x onerror=\"window.__pwned = 2; alert('x')\">\x1b[1;1H"


def test_a_run_is_followed_while_its_owner_writes_and_resumed_with_what_was_written(
    server: Ledger, owner: Page
) -> None:
    run = started(server)
    owner.goto(f"/runs/{run.id}")
    expect(owner.locator("#sentence")).to_have_text("The master reviews the plan.")
    expect(owner.locator("#live.live")).to_be_visible()
    run.hears(f"It will not do. {HOSTILE}").judges(None, words.BLOCK, HOSTILE)
    block = facts.run_blocked(
        words.PLAN_REVIEW, None, words.BY_VERDICT, HOSTILE, interrupted=False, repair="not_configured"
    )
    run.says(*block)
    expect(owner.locator("#asks")).to_contain_text("<script>window.__pwned = 1</script>")
    owner.get_by_text("Resume with a new plan …").click()
    form = owner.get_by_label("Steps as JSON")
    written = form.input_value().replace("a memory limit", "a limit")
    form.fill(written)
    owner.locator("#title").click()  # the form has no focus now, and is not taken away all the same
    run.says(facts.lease_taken("runner-1", 1), facts.repair_started(1, None, words.PLAN_REVIEW, "x", catchup=False))
    expect(owner.locator("#repairs")).to_be_visible()
    expect(form).to_have_value(written)
    owner.get_by_role("button", name="Resume with this").click()
    expect(owner.locator("#sentence")).to_have_text("The master reviews the plan.")
    expect(owner.locator("#step-2 .title")).to_have_text("2. Give the shop's workers a limit")
    assert owner.evaluate("window.__pwned") is None
    assert owner.locator("main script, main img").count() == 0
    server.post(f"/api/tasks/{run.id}/cancel")
    expect(owner.locator("#sentence")).to_have_text("Cancelled with its task.")


def test_a_long_answer_is_read_whole_where_it_stands(server: Ledger, owner: Page) -> None:
    run = started(server)
    run.hears("It begins here.\n" + "word " * 3_000 + "It ends here.")
    owner.goto(f"/runs/{run.id}")
    answer = owner.locator("#reply-q1")
    answer.locator("summary").click()
    expect(answer).to_contain_text("characters left out here")
    answer.get_by_text("read all of it").click()
    expect(answer).not_to_contain_text("left out")
    expect(answer).to_contain_text("It ends here.")
    server.post(f"/api/tasks/{run.id}/cancel")
