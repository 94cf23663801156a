from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from projections.incidents_board import incident_id
from tests.browser.driving import OWNER_TOKEN, WAIT_MS, Ledger, serving
from tests.browser.incidents import swept
from tests.browser.loops import looping

REMARK = "It builds at last. The linker wanted more memory than the tests."
LONGEST_FRAME_MS = """() => new Promise(resolve => {
  let last = performance.now(), longest = 0;
  const until = last + 2000;
  const tick = now => {
    longest = Math.max(longest, now - last);
    last = now;
    if (now < until) requestAnimationFrame(tick); else resolve(longest);
  };
  requestAnimationFrame(tick);
})"""
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
        expect(page.locator("#notice")).to_contain_text("Connected again: 3 events caught up.", timeout=WAIT_MS)
        expect(page.locator("#live.live")).to_have_text("live")
        expect(page.locator("main")).to_contain_text("Missed 2.")
        page.get_by_role("button", name="Close").click()
        expect(page.locator("#notice")).to_be_hidden()
        context.close()


def test_a_form_being_filled_in_stays_while_the_page_goes_on(server: Ledger, owner: Page) -> None:
    goal, _ = server.started_goal("Leave me be", "typing")
    owner.goto(f"/goals/{goal}")
    expect(owner.locator("#live.live")).to_be_visible()
    owner.get_by_text("Cancel …").click()
    reason = owner.get_by_label("Reason")
    reason.fill("no longer")
    server.push("typing", (0, "comment", {"body": "Still here."}))
    expect(owner.locator("main")).to_contain_text("Still here.")
    expect(reason).to_have_value("no longer")
    expect(reason).to_be_focused()
    expect(owner.locator("#ask-cancel")).to_have_attribute("open", "")


def test_a_selection_and_an_unfolded_text_outlast_what_comes_in(server: Ledger, owner: Page) -> None:
    goal, _ = server.started_goal("Hold on", "selected", brief="Long words. " * 60)
    server.push("selected", (0, "comment", {"body": "Select these words."}))
    owner.goto(f"/goals/{goal}")
    expect(owner.locator("#live.live")).to_be_visible()
    owner.locator("details.brief summary").click()
    owner.locator(".narrative").get_by_text("Select these words.").evaluate(
        "node => getSelection().selectAllChildren(node)"
    )
    server.push("selected", (1, "comment", {"body": "News."}))
    expect(owner.locator(".narrative")).to_contain_text("News.")
    assert owner.evaluate("getSelection().toString()") == "Select these words."
    expect(owner.locator("details.brief")).to_have_attribute("open", "")


def test_the_row_under_the_pointer_stays_there_when_rows_come_above_it(server: Ledger, owner: Page) -> None:
    goal, _ = server.started_goal("Stay", "pointed")
    server.push("pointed", *((seq, "comment", {"body": f"Remark number {seq}."}) for seq in range(40)))
    owner.goto(f"/goals/{goal}")
    expect(owner.locator("#live.live")).to_be_visible()
    row = owner.get_by_text("Remark number 33.", exact=True)
    row.hover()
    stood = row.bounding_box()
    server.push("pointed", *((seq, "comment", {"body": f"Remark number {seq}."}) for seq in range(40, 45)))
    expect(owner.locator(".narrative")).to_contain_text("Remark number 44.")
    moved = row.bounding_box()
    assert stood is not None
    assert moved is not None
    assert abs(stood["y"] - moved["y"]) < 3


def test_a_goal_is_seen_as_it_stood(server: Ledger, owner: Page) -> None:
    goal, _ = server.started_goal("Look back", "looking-back")
    for seq in range(4):
        server.push("looking-back", (seq, "comment", {"body": f"Step {seq} is done."}))
    owner.goto(f"/goals/{goal}")
    slider = owner.get_by_label("As it stood")
    expect(owner.locator("form.past output")).to_have_text("now")
    slider.focus()
    slider.press("ArrowLeft")
    owner.wait_for_url("**/goals/*?at=*")
    expect(owner.locator(".then")).to_contain_text("This is how it stood")
    expect(owner.locator("main")).to_contain_text("Step 2 is done.")
    assert "Step 3 is done." not in owner.locator(".narrative").inner_text()
    expect(owner.locator("#live")).to_be_hidden()
    assert owner.locator(".actions").count() == 0
    owner.get_by_role("link", name="Back to now").click()
    expect(owner.locator("main")).to_contain_text("Step 3 is done.")


def test_a_long_output_is_fetched_on_demand(server: Ledger, owner: Page) -> None:
    server.started_goal("Long output", "long-output")
    output = "first\n" + "x" * 20_000 + "\x1b[31mred\x1b[0m" + "y" * 20_000 + "\nlast"
    server.push(
        "long-output",
        (0, "tool_call", {"tool": "shell", "args": {"command": "make"}, "call_id": "c"}),
        (1, "tool_result", {"call_id": "c", "output": output, "exit_code": 2}),
    )
    owner.goto("/sessions/long-output")
    expect(owner.locator(".output")).to_contain_text("characters left out here")
    owner.get_by_role("link", name="read all of it").click()
    expect(owner.locator(".output .fg1")).to_have_text("red")
    expect(owner).to_have_url(re.compile("/sessions/long-output$"))
    assert len(owner.locator(".output").inner_text()) == len(output) - len("\x1b[31m\x1b[0m")


@pytest.fixture(scope="module")
def long_session(server: Ledger) -> str:
    """The path of a session of 40,000 messages: `Word 0.` and so on."""
    server.started_goal("A long one", "forty-thousand")
    for start in range(0, 40_000, 10_000):
        said = [{"role": "assistant", "text": f"Word {seq}."} for seq in range(start, start + 10_000)]
        server.push("forty-thousand", *((start + n, "message", payload) for n, payload in enumerate(said)))
    return "/sessions/forty-thousand"


def test_a_session_of_forty_thousand_events_is_walked_from_any_event(owner: Page, long_session: str) -> None:
    owner.goto(f"{long_session}?around=20000#e-20000")
    expect(owner.locator("#e-20000")).to_be_in_viewport()
    expect(owner.locator("#e-19999")).to_be_visible()
    assert owner.locator(".entry").count() <= 200
    owner.get_by_role("link", name="Earlier events").first.click()
    expect(owner.locator("main")).to_contain_text("Word 19900.")
    owner.get_by_role("link", name="The newest").first.click()
    expect(owner.locator("main")).to_contain_text("Word 39999.")
    owner.get_by_role("link", name="The beginning").first.click()
    expect(owner.locator("#e--1")).to_be_visible()


def test_a_long_session_stays_smooth_while_sixteen_saddles_push(
    server: Ledger, owner: Page, long_session: str
) -> None:
    for number in range(16):
        server.open(f"busy-{number}", str(server.post("/api/tasks", {"title": f"Busy {number}"})["id"]))
    ended = threading.Event()

    def push(number: int) -> int:
        pushed = 0
        while not ended.is_set():
            at = range(pushed, pushed + 20)
            server.push(f"busy-{number}", *((seq, "comment", {"body": f"Saddle {number}, {seq}."}) for seq in at))
            pushed += 20
        return pushed

    with ThreadPoolExecutor(16) as saddles:
        pushes = [saddles.submit(push, number) for number in range(16)]
        try:
            owner.goto(f"{long_session}?around=20000#e-20000")
            expect(owner.locator("#e-20000")).to_be_in_viewport()
            owner.get_by_role("link", name="Later events").first.click()
            expect(owner.locator("main")).to_contain_text("Word 20180.")
            owner.goto("/")
            expect(owner.locator("#live.live")).to_be_visible()
            first = owner.locator("#facts").inner_text()
            expect(owner.locator("#facts")).not_to_have_text(first)
            stalls = owner.evaluate(LONGEST_FRAME_MS)
            idle = owner.context.new_page().evaluate(LONGEST_FRAME_MS)  # the machine stalls an empty page too
        finally:
            ended.set()
        assert all(pushed.result() > 100 for pushed in pushes)
    assert stalls < 500 + 5 * idle, (stalls, idle)


def test_a_failure_says_who_delivered_it_and_leads_to_each(server: Ledger, owner: Page) -> None:
    goal, run = server.started_goal("Fail often", "failing-1")
    server.open("failing-2", run)
    for session, times in (("failing-1", 3), ("failing-2", 2)):
        for _ in range(times):
            server.result(session, "failed", "out of memory")
    owner.goto("/")
    expect(owner.locator("#failed")).to_contain_text("× 5 deliveries, 2 sessions")
    owner.goto(f"/goals/{goal}")
    owner.locator(".row details.times summary").click()
    owner.get_by_role("link", name="failing-2").first.click()
    expect(owner.locator("main")).to_contain_text("out of memory")


def test_a_login_that_has_run_out_says_so(server: Ledger, owner: Page) -> None:
    owner.context.add_cookies([{"name": "ledgerd", "value": "stale", "url": server.url}])
    owner.goto("/tasks")
    expect(owner.get_by_role("alert")).to_contain_text("Your login has run out")


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


def test_the_pages_are_named_on_one_line_of_a_telephone(owner: Page) -> None:
    owner.set_viewport_size({"width": 390, "height": 800})
    owner.goto("/")
    tops = owner.locator("header nav a").evaluate_all("links => links.map(link => link.offsetTop)")
    assert len(tops) == 7
    assert len(set(tops)) == 1


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
    loop = looping(server, "W" * 60, f"loop-{width}", "H" * 60, datetime.now(UTC))
    loop.works(1, 5)
    loop.halts("X" * 300, tick=1, detail="y" * 900, files=["z" * 300])
    incident = {
        "register": f"r{width}",
        "fingerprint": "f",
        "severity": "HIGH",
        "title": "W" * 300,
        "what": "y" * 900,
    }
    swept(server, f"sweep-{width}", [("incident.filed", incident)])
    filed = f"/incidents/{incident_id(f'r{width}', 'f')}"
    paths = ("/", "/goals", "/tasks", f"/goals/{goal}", f"/tasks/{run}", f"/sessions/{session}")
    for path in (*paths, "/loops", f"/loops/loop-{width}", "/incidents", filed):
        owner.goto(path)
        assert owner.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), path
