from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.driving import OWNER_TOKEN, WAIT_MS, Ledger, serving

REMARK = "It builds at last. The linker wanted more memory than the tests."
HOSTILE = "<script>window.__pwned = 1</script><img src=x onerror=\"window.__pwned = 2; alert('x')\">"


def test_a_login_link_logs_in_and_leaves_no_token_behind(visitor: Page) -> None:
    addresses: list[str] = []
    visitor.on("request", lambda request: addresses.append(request.url))
    visitor.goto(f"/login#{OWNER_TOKEN}")
    visitor.wait_for_url("/")
    expect(visitor.get_by_role("heading", level=1)).to_have_text("Nothing needs you")
    assert not any(OWNER_TOKEN in address for address in [*addresses, visitor.url])
    visitor.go_back()
    assert OWNER_TOKEN not in visitor.url


def test_the_login_form_takes_a_token_and_leads_back(server: Ledger, visitor: Page) -> None:
    goal = server.goal("Lead me back")
    visitor.goto(f"/goals/{goal}")
    visitor.get_by_label("Access token").fill(OWNER_TOKEN)
    visitor.get_by_role("button", name="Log in").click()
    visitor.wait_for_url(f"/goals/{goal}")
    expect(visitor.get_by_role("heading", level=1)).to_have_text("Lead me back")


def test_a_wrong_token_is_refused_with_its_reason(visitor: Page) -> None:
    visitor.goto("/login")
    visitor.get_by_label("Access token").fill("ld_owner_nobody")
    visitor.get_by_role("button", name="Log in").click()
    expect(visitor.get_by_role("alert")).to_contain_text("unknown")


def test_logging_out_closes_the_pages(owner: Page) -> None:
    owner.get_by_role("button", name="Log out").click()
    owner.wait_for_url("/login")
    owner.goto("/goals")
    expect(owner).to_have_url(re.compile("/login"))


def test_a_remark_is_a_footnote_and_its_command_is_not_shown(server: Ledger, owner: Page) -> None:
    goal, _ = server.started_goal("Build it", "remarking")
    echo = f"cat << 'EOF' | ledgerd comment\n{REMARK}\nEOF"
    server.push(
        "remarking",
        (0, "tool_call", {"tool": "shell", "args": {"command": echo}}),
        (1, "comment", {"body": REMARK}),
    )
    owner.goto(f"/goals/{goal}")
    expect(owner.locator(".row.remark")).to_contain_text("It builds at last.")
    expect(owner.locator(".footnote")).to_contain_text(REMARK)
    assert "EOF" not in owner.content()
    owner.get_by_label("Whole remark 1").click()
    expect(owner.locator(".footnote:target")).to_be_in_viewport()


@pytest.mark.parametrize("page", ["goal", "task", "session", "home", "goals", "tasks"])
def test_what_agents_write_runs_no_script(server: Ledger, owner: Page, page: str) -> None:
    session = f"hostile/{page}"
    goal, run = server.started_goal(HOSTILE, session, brief=HOSTILE, branch_name=HOSTILE)
    server.push(
        session,
        (0, "comment", {"body": f"{HOSTILE}. More.\x1b[r\x1b[1;1H\u202e"}),
        (1, "tool_call", {"tool": HOSTILE, "args": {"command": HOSTILE}, "call_id": "c"}),
        (2, "tool_result", {"call_id": "c", "output": f"</pre></details>{HOSTILE}", "exit_code": 1}),
        (3, HOSTILE, {HOSTILE: HOSTILE}),
        (4, "waiting", {"question": HOSTILE}),
    )
    address = {
        "goal": f"/goals/{goal}",
        "task": f"/tasks/{run}",
        "session": f"/sessions/{session}",
        "home": "/",
        "goals": "/goals",
        "tasks": "/tasks",
    }[page]
    owner.goto(address)
    expect(owner.locator("#live.live")).to_be_visible()
    assert owner.evaluate("window.__pwned") is None
    assert owner.locator("main script, main img").count() == 0
    expect(owner.locator("main")).to_contain_text("<script>window.__pwned = 1</script>")


def test_a_goal_page_follows_what_is_pushed_and_keeps_its_place(server: Ledger, owner: Page) -> None:
    goal, _ = server.started_goal("Follow me", "followed")
    server.push("followed", *((seq, "comment", {"body": f"Remark number {seq}."}) for seq in range(60)))
    owner.goto(f"/goals/{goal}")
    expect(owner.locator("#live.live")).to_be_visible()
    held = owner.get_by_text("Remark number 20.", exact=True)
    held.scroll_into_view_if_needed()
    stood = held.bounding_box()
    server.push("followed", (60, "comment", {"body": "And one more."}))
    expect(owner.get_by_text("And one more.", exact=True).last).to_be_attached()
    moved = held.bounding_box()
    assert stood is not None
    assert moved is not None
    assert abs(stood["y"] - moved["y"]) < 3
    server.result("followed", "failed", "the harness collapsed")
    expect(owner).to_have_title("failed · Follow me · ledgerd")
    expect(owner.locator(".row.failed")).to_contain_text("the harness collapsed")
    assert owner.locator('link[rel="icon"]').get_attribute("href") == "/static/favicon-failed.svg"


def test_a_page_that_was_away_says_what_it_caught_up(browser: Browser, tmp_path: Path) -> None:
    context = browser.new_context()
    page = context.new_page()
    with serving(tmp_path) as ledger:
        goal, _ = ledger.started_goal("Come back", "coming-back")
        page.goto(f"{ledger.url}/login?next=/goals/{goal}#{OWNER_TOKEN}")
        page.wait_for_url(f"**/goals/{goal}")
        expect(page.locator("#live")).to_have_text("live")
        page.route("**/api/live**", lambda route: route.abort("connectionrefused"))
    expect(page.locator("#live.away")).to_have_text("reconnecting …", timeout=WAIT_MS)
    with serving(tmp_path, port=httpx.URL(ledger.url).port or 0) as ledger:
        ledger.push("coming-back", *((seq, "comment", {"body": f"Missed {seq}."}) for seq in range(3)))
        page.unroute("**/api/live**")
        expect(page.locator("#live.live")).to_have_text("reconnected, 3 events caught up", timeout=WAIT_MS)
        expect(page.locator("main")).to_contain_text("Missed 2.")
        context.close()


def test_a_form_being_filled_in_is_not_taken_away(server: Ledger, owner: Page) -> None:
    goal, _ = server.started_goal("Leave me be", "typing")
    owner.goto(f"/goals/{goal}")
    expect(owner.locator("#live.live")).to_be_visible()
    owner.get_by_text("Cancel …").click()
    reason = owner.get_by_label("Reason")
    reason.fill("no longer")
    server.push("typing", (0, "comment", {"body": "Still here."}))
    expect(owner.locator("#live")).to_have_text("news waits while you select or type")
    expect(reason).to_have_value("no longer")
    reason.fill("")
    expect(owner.locator("main")).to_contain_text("Still here.")
    expect(owner.locator("#live")).to_have_text("live")
    expect(owner.locator("#ask-cancel")).to_have_attribute("open", "")


def test_an_owner_starts_and_cancels_a_goal_on_its_page(server: Ledger, owner: Page) -> None:
    goal = server.goal("Start and stop")
    owner.goto(f"/goals/{goal}")
    owner.get_by_role("button", name="Start", exact=True).click()
    expect(owner.locator(".sentence")).to_have_text("Running.")
    owner.get_by_text("Cancel …").click()
    owner.get_by_label("Reason").fill("not needed any more")
    owner.get_by_role("button", name="Cancel it").click()
    expect(owner.locator(".sentence")).to_contain_text("Cancelled")
    expect(owner.locator(".narrative")).to_contain_text("not needed any more")
    assert server.get(f"/api/goals/{goal}")["status"] == "cancelled"


def test_a_form_without_its_csrf_token_is_refused(server: Ledger, owner: Page) -> None:
    goal = server.goal("Do not touch")
    owner.goto(f"/goals/{goal}")
    owner.locator(f'form[action="/goals/{goal}/start"] input[name=csrf]').evaluate("input => input.remove()")
    owner.get_by_role("button", name="Start", exact=True).click()
    expect(owner.get_by_text("403")).to_be_visible()
    assert server.get(f"/api/goals/{goal}")["status"] == "created"


def test_pages_read_without_scripts(server: Ledger, browser: Browser) -> None:
    goal, _ = server.started_goal("Plain paper", "plain")
    server.push("plain", (0, "comment", {"body": REMARK}))
    context = browser.new_context(base_url=server.url, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"/goals/{goal}")
    page.get_by_label("Access token").fill(OWNER_TOKEN)
    page.get_by_role("button", name="Log in").click()
    expect(page.locator(".footnote")).to_contain_text(REMARK)
    expect(page.locator("#live")).to_be_hidden()
    context.close()


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_no_page_is_wider_than_its_window(server: Ledger, owner: Page, width: int) -> None:
    session = f"wide-{width}"
    goal, run = server.started_goal("W" * 180, session)
    server.push(
        session,
        (0, "comment", {"body": "x" * 500}),
        (1, "tool_result", {"output": "y" * 9000, "exit_code": 2}),
        (2, "error", {"message": "z" * 900}),
    )
    owner.set_viewport_size({"width": width, "height": 800})
    for path in ("/", "/goals", "/tasks", f"/goals/{goal}", f"/tasks/{run}", f"/sessions/{session}"):
        owner.goto(path)
        assert owner.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), path
