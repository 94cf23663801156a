"""The pages of runs: what they tell, who sees them, and what an owner decides there."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from ledger.http.remediation_rows import status_of_run
from projections.remediation import facts, story, words
from tests.unit.http import run_samples as runs
from tests.unit.http.in_process import Desk, desk, said
from tests.unit.http.page_samples import READER
from tests.unit.http.remediating import blocked, started, step


@pytest.fixture
async def ledger() -> AsyncIterator[Desk]:
    async with desk() as made:
        yield made


class Browser:
    """Somebody logged in at a browser."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def page(self, path: str) -> str:
        answer = await self.http.get(path)
        assert answer.status_code == 200, answer.text
        return answer.text

    async def decide(self, run_id: str, action: str, **fields: str) -> httpx.Response:
        page = await self.page(f"/runs/{run_id}")
        [csrf] = set(re.findall(r'name="csrf" value="([^"]*)"', page))
        return await self.http.post(f"/runs/{run_id}/{action}", data={"csrf": csrf, **fields})


async def browser(ledger: Desk, role: str = "owner", name: str = "owner") -> Browser:
    return Browser(await ledger.browser(role, name))


# What they tell


async def test_a_run_is_told_as_what_was_said_to_whom_and_what_came_of_it(ledger: Desk) -> None:
    runner = await blocked(ledger, "A deploy is needed. Nobody but you may do it.")
    page = said(await ledger.page(f"/runs/{runner.id}"))
    assert "Blocked at step 1 of 2: waits for you." in page
    assert "Needs you A deploy is needed. Nobody but you may do it." in page
    for told in ("To the master review of the plan", "To Überbau work, step 1", "Report It is done."):
        assert told in page
    assert "The master answered $ 0.25" in page
    assert page.index("To Überbau") < page.index("review of the plan"), "the newest stands first"
    assert "$ 1.00" in page


async def test_a_long_reason_says_that_its_middle_is_left_out_and_where_it_is(ledger: Desk) -> None:
    runner = await blocked(ledger, f"It begins. {'word ' * 2_000}It ends.")
    page = await ledger.page(f"/runs/{runner.id}")
    asked = page.partition('id="asks"')[2].partition("</section>")[0]
    assert "It begins." in asked
    assert "6,019 characters left out here" in asked
    assert "It ends." in asked
    assert 'class="said" tabindex="0"' in asked  # a keyboard can scroll it
    assert re.search(rf'<a href="/sessions/{runner.id}\?around=\d+#e-\d+">they are in its session</a>', page)


async def test_what_waits_for_its_owner_stands_among_what_needs_a_person(ledger: Desk) -> None:
    runner = await blocked(ledger, "A deploy is needed.")
    [item] = (await ledger.get("/api/fleet"))["needs_you"]
    assert (item["run_id"], item["question"], item["goal_id"]) == (runner.id, "A deploy is needed.", None)
    home = await ledger.page("/")
    assert f'href="/runs/{runner.id}"' in home
    assert "One thing needs you" in home
    await runner.repairs("A deploy is needed.")
    assert (await ledger.get("/api/fleet"))["needs_you"] == []
    assert "the tool is being repaired" in await ledger.page(f"/runs/{runner.id}")
    await runner.replied("Only you can.")
    await runner.says(*facts.repair_needs_user(1, "s1", "Deploy it, please."))
    [item] = (await ledger.get("/api/fleet"))["needs_you"]
    assert item["question"] == "Deploy it, please."
    await ledger.post("/api/resource-remediation/resume")
    assert (await ledger.get("/api/fleet"))["needs_you"] == []


async def test_a_run_whose_task_was_cancelled_needs_nobody(ledger: Desk) -> None:
    runner = await blocked(ledger)
    await ledger.post(f"/api/tasks/{runner.id}/cancel")
    assert (await ledger.get("/api/fleet"))["needs_you"] == []
    page = await ledger.page(f"/runs/{runner.id}")
    assert "Cancelled with its task." in page
    assert "/resume" not in page


async def test_the_list_of_runs_tells_the_newest_first(ledger: Desk) -> None:
    assert "No run yet." in await ledger.page("/runs")
    first = await started(ledger)
    await first.says(*facts.run_completed(2))
    second = await blocked(ledger, "A deploy is needed.")
    page = await ledger.page("/runs")
    assert page.index(second.id) < page.index(first.id)
    assert "A deploy is needed." in page
    assert first.id in await ledger.page(f"/runs?after={second.id}")
    assert second.id not in await ledger.page(f"/runs?after={second.id}")
    assert (await ledger.http.get("/runs?after=none")).status_code == 422


async def test_the_page_of_a_runs_task_leads_to_the_run_and_others_do_not(ledger: Desk) -> None:
    runner = await started(ledger)
    await ledger.post("/api/tasks", id="other", title="Other")
    assert f'href="/runs/{runner.id}"' in await ledger.page(f"/tasks/{runner.id}")
    assert "/runs/" not in await ledger.page("/tasks/other")


async def test_what_is_too_long_for_the_page_is_a_link_away_and_older_rows_too(ledger: Desk) -> None:
    runner = await started(ledger)
    await runner.judged(words.APPROVE, "Good")
    await runner.works("Long. " + "x" * 9_000 + " The end.")
    for _ in range(story.ROWS_SHOWN):
        await runner.says(facts.review_restarted("q1", None, 1))
    page = await ledger.page(f"/runs/{runner.id}")
    assert "To Überbau" not in page
    [older] = re.findall(r'href="/runs/[^"?]*\?before=(\d+)"', page)
    page = await ledger.page(f"/runs/{runner.id}?before={older}")
    assert "characters left out here" in page
    assert f'href="/runs/{runner.id}?exchange=q2"' in page
    whole = await ledger.page(f"/runs/{runner.id}?exchange=q2")
    assert "x" * 9_000 + " The end." in whole
    assert (await ledger.http.get(f"/runs/{runner.id}?exchange=q99")).status_code == 404
    assert (await ledger.http.get(f"/runs/{runner.id}?before=x")).status_code == 422


def test_the_whole_of_a_story_comes_in_pages_each_row_once() -> None:
    run = runs.completed()
    whole, older = story.story(run, limit=1_000)
    assert older is None
    pages: list[Any] = []
    before: int | None = None
    while True:
        rows, before = story.story(run, before=before, limit=4)
        pages = rows + pages
        if before is None:
            break
    assert pages == whole
    assert [row["queue_id"] for row in whole if "queue_id" in row] == [f"q{number}" for number in range(1, 13)]


def test_convergence_is_told_by_step() -> None:
    page = said(runs.rendered(runs.page()))
    assert "3 rounds" not in page
    assert "findings 2 → 1 → 0 shrinking" in page


def test_what_moved_nothing_is_shown_and_why() -> None:
    page = said(runs.rendered(runs.page()))
    for told in ("The answer was empty.", "exit code 1", "Überbau failed", "The master was interrupted", "SIGTERM"):
        assert told in page
    assert "answered 2 times" in page


def test_how_it_stands_is_said_at_every_stage() -> None:
    page = runs.page(runs.begun())
    assert status_of_run(page) == ("running", "The master reviews the plan.")
    for stage, told in (
        (words.AGENT, "The agent works on step 1 of 2."),
        (words.SUPERVISOR, "The master reviews step 1 of 2."),
        (words.FINAL_REVIEW, "The master looks at the whole once more."),
    ):
        assert status_of_run({**page, "stage": stage}) == ("running", told)
    stuck = {**page, "status": words.BLOCKED, "waits_for": {"text": ""}}
    assert status_of_run(stuck) == ("waiting", "Blocked in the review of the plan: waits for you.")
    assert status_of_run(runs.page(runs.completed())) == ("done", "Completed")


def test_a_reader_is_offered_no_decision() -> None:
    assert "<form" in runs.rendered(runs.page()).split("<main")[1]
    assert "<form" not in runs.rendered(runs.page(), me=READER).split("<main")[1]


# What is decided there


async def test_an_owner_resumes_from_the_page(ledger: Desk) -> None:
    runner, visitor = await blocked(ledger), await browser(ledger)
    answer = await visitor.decide(runner.id, "resume")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/runs/{runner.id}")
    assert (await ledger.get("/api/resource-remediation"))["status"] == "RUNNING"
    assert "owner resumed it." in await visitor.page(f"/runs/{runner.id}")
    again = await visitor.http.post(f"/runs/{runner.id}/resume", data={"csrf": await _csrf(visitor)})
    assert again.status_code == 409


async def test_the_form_for_a_new_plan_holds_the_plan_and_takes_it_back_changed(ledger: Desk) -> None:
    runner, visitor = await blocked(ledger), await browser(ledger)
    page = await visitor.page(f"/runs/{runner.id}")
    [text] = re.findall(r"<textarea[^>]*>(.*?)</textarea>", page, re.DOTALL)
    plan = json.loads(text.replace("&#34;", '"'))
    assert [one["id"] for one in plan] == ["s1", "s2"]
    plan[0]["prompt"] = "Without a deploy"
    for wrong, status in (
        ("[1", 422),
        ("[" * 100_000, 422),
        (json.dumps([plan[0]]), 409),
        (json.dumps({"steps": plan, "x": 1}), 422),
        ('"all"', 422),
    ):
        assert (await visitor.decide(runner.id, "resume", plan=wrong)).status_code == status, wrong[:20]
    assert (await visitor.decide(runner.id, "resume", plan=json.dumps({"steps": plan}))).status_code == 303
    told = await ledger.get("/api/resource-remediation")
    assert told["steps"][0]["prompt"] == "Without a deploy"
    assert "with a revised plan" in await visitor.page(f"/runs/{runner.id}")


async def test_a_plan_too_long_for_a_form_is_left_to_the_command_line(ledger: Desk) -> None:
    plan = [step(number, prompt="x" * 40_000) for number in (1, 2, 3)]
    runner = await started(ledger, plan)
    await runner.judged(words.BLOCK, "Too long")
    await runner.blocks("Too long", stage=words.PLAN_REVIEW)
    page = await ledger.page(f"/runs/{runner.id}")
    assert "ledgerd remediate resume PLAN.json" in page
    assert len(page) < 100_000


async def test_an_owner_approves_from_the_page(ledger: Desk) -> None:
    runner, visitor = await blocked(ledger), await browser(ledger)
    assert (await visitor.decide(runner.id, "approve", feedback="Deploy it to staging")).status_code == 303
    page = await visitor.page(f"/runs/{runner.id}")
    assert "owner approved what it waited for." in page
    assert "Deploy it to staging" in page


async def test_nobody_decides_without_the_form_of_the_page(ledger: Desk) -> None:
    runner, visitor = await blocked(ledger), await browser(ledger)
    for action in ("resume", "approve"):
        answer = await visitor.http.post(f"/runs/{runner.id}/{action}", data={"csrf": "guessed"})
        assert answer.status_code == 403
    reader = await browser(ledger, "reader", "watcher")
    answer = await reader.http.post(f"/runs/{runner.id}/resume", data={"csrf": await _csrf(reader)})
    assert answer.status_code == 403
    assert (await ledger.get("/api/resource-remediation"))["status"] == "BLOCKED"


# Who sees them


async def test_another_owner_sees_none_of_it_and_a_reader_all(ledger: Desk) -> None:
    runner = await blocked(ledger)
    second, watcher = await browser(ledger, "owner", "second"), await browser(ledger, "reader", "watcher")
    for path in (f"/runs/{runner.id}", f"/runs/{runner.id}?exchange=q1"):
        assert (await second.http.get(path)).status_code == 404
        assert (await watcher.http.get(path)).status_code == 200
    assert "No run yet." in await second.page("/runs")
    assert runner.id in await watcher.page("/runs")
    answer = await second.http.post(f"/runs/{runner.id}/resume", data={"csrf": await _csrf(second)})
    assert answer.status_code == 404
    assert (await watcher.http.get("/runs/none")).status_code == 404


async def test_who_is_not_logged_in_is_sent_to_the_login_and_back(ledger: Desk) -> None:
    runner = await blocked(ledger)
    nobody = httpx.AsyncClient(transport=ledger.http._transport, base_url="http://ledger")
    for path in ("/runs", f"/runs/{runner.id}"):
        answer = await nobody.get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, f"/login?next={path.replace('/', '%2F')}")


async def _csrf(visitor: Browser) -> str:
    return re.findall(r'name="csrf" value="([^"]*)"', await visitor.page("/runs"))[0]
