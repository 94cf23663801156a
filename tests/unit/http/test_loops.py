"""Loops on the server: how they are found and folded, what their pages tell, and what is asked of them there."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from ledger.commands import loop_reading
from tests.unit.http import loop_samples as samples
from tests.unit.http.in_process import Desk, desk, said
from tests.unit.http.loop_samples import CONFIG, Event, halted, round_of
from tests.unit.http.page_samples import READER

HALT: list[Event] = [halted(tick=3), ("result", {"state": "suspended", "summary": "scope_violation: Outside."})]


class Looping:
    """A loop and its runner, as far as the ledger hears of them."""

    def __init__(self, ledger: Desk, task_id: str) -> None:
        self.ledger = ledger
        self.id = task_id
        self._seq = 0

    async def says(self, *events: Event) -> None:
        rows = [(self._seq + n, kind, payload) for n, (kind, payload) in enumerate(events)]
        self._seq += len(events)
        await self.ledger.push(f"s-{self.id}", *rows)

    async def page(self) -> str:
        return await self.ledger.page(f"/loops/{self.id}")

    async def told(self) -> Any:
        return await self.ledger.get(f"/api/loops/{self.id}")

    async def ask(self, action: str) -> httpx.Response:
        return await self.ledger.http.post(f"/api/loops/{self.id}/{action}", json={"reason": "It is late."})


async def looping(
    ledger: Desk, task_id: str, name: str = "mend", goal_id: str | None = None, **config: Any
) -> Looping:
    """A loop that has two rounds behind it."""
    await ledger.post("/api/tasks", id=task_id, title=f"Loop {name}", goal_id=goal_id)
    await ledger.open(f"s-{task_id}", task_id, agent="ledgerd-loop", host="mole", cwd="/srv/shop")
    made = Looping(ledger, task_id)
    configured = ("loop.configured", {"name": name, "config": {**CONFIG, **config}, "digest": "d"})
    task = ("loop.task_set", {"task": "Mend the test."})
    await made.says(configured, task, *round_of(1, 0.25), *round_of(2, 0.5))
    return made


@pytest.fixture
async def ledger() -> AsyncIterator[Desk]:
    async with desk() as made:
        yield made


# Found and folded


async def test_loops_are_listed_the_newest_first_and_a_page_at_a_time(ledger: Desk) -> None:
    for number in range(5):
        ledger.wait(1)
        await looping(ledger, f"t{number}", f"l{number}")
    await ledger.post("/api/tasks", id="other", title="No loop")
    names: list[str] = []
    after = ""
    while after is not None:
        answer = await ledger.get(f"/api/loops?limit=2{after and f'&after={after}'}")
        names += [one["name"] for one in answer["items"]]
        after = answer["next"]
    assert names == ["l4", "l3", "l2", "l1", "l0"]
    assert (await ledger.http.get("/api/loops?after=none")).status_code == 422
    assert (await ledger.http.get("/api/loops?limit=201")).status_code == 422


async def test_a_loop_is_known_by_its_task_and_by_its_name_where_no_other_has_it(ledger: Desk) -> None:
    await looping(ledger, "one", "mend")
    assert (await ledger.get("/api/loops/mend"))["task_id"] == "one"
    await looping(ledger, "two", "mend")
    answer = await ledger.http.get("/api/loops/mend")
    assert (answer.status_code, answer.json()["code"]) == (409, "ambiguous_loop")
    assert (await ledger.get("/api/loops/two"))["task_id"] == "two"
    choice = await ledger.page("/loops/mend")
    assert {'href="/loops/one"', 'href="/loops/two"'} <= set(re.findall(r'href="/loops/\w+"', choice))
    for path in ("/api/loops/none", "/loops/none"):
        assert (await ledger.http.get(path)).status_code == 404


async def test_a_loop_told_again_under_another_session_is_one_loop_with_each_round_once(ledger: Desk) -> None:
    loop = await looping(ledger, "t")
    await ledger.open("again", "t", agent="ledgerd-loop")
    configured = ("loop.configured", {"name": "mend", "config": CONFIG, "digest": "d"})
    events = [configured, ("loop.task_set", {"task": "Mend the test."}), *round_of(1, 0.25), *round_of(2, 0.5)]
    await ledger.push("again", *((seq, kind, payload) for seq, (kind, payload) in enumerate(events)))
    assert [one["task_id"] for one in (await ledger.get("/api/loops"))["items"]] == ["t"]
    assert (await loop.told())["iteration_count"] == 2


async def test_what_comes_in_below_what_was_read_counts_all_the_same(ledger: Desk) -> None:
    loop = await looping(ledger, "t")
    third = round_of(3, 0.75)
    await ledger.push("s-t", *((110 + n, kind, payload) for n, (kind, payload) in enumerate(third)))
    assert (await loop.told())["iteration_count"] == 3
    fourth = round_of(4, 1.0, passed=True)
    await ledger.push("s-t", *((90 + n, kind, payload) for n, (kind, payload) in enumerate(fourth)))
    assert [one["score"] for one in (await loop.told())["scores"]] == [0.25, 0.5, 0.75, 1.0]


async def test_what_its_agents_cost_is_the_loops_cost_and_what_others_cost_is_not(ledger: Desk) -> None:
    loop = await looping(ledger, "t")
    await ledger.open("agents", "t", agent="ledgerd-loop-agents", parent_session_id="s-t")
    await ledger.open("other", "t", agent="codex", parent_session_id="s-t")
    for session, cost in (("agents", 2.5), ("other", 40)):
        await ledger.push(session, (0, "usage", {"message_id": session, "input_tokens": 1, "cost_usd": cost}))
    told = await loop.told()
    assert told["usage"]["cost_usd"] == told["cost_usd"] == 2.5
    budget = next(brake for brake in told["brakes"] if brake["reason"] == "budget_exhausted")
    assert (budget["value"], budget["limit"]) == (2.5, 10)


async def test_an_end_in_the_end_slot_hides_nothing_that_comes_before_it(ledger: Desk) -> None:
    loop = await looping(ledger, "t")
    await ledger.result("s-t", "done")
    assert (await loop.told())["iteration_count"] == 2
    await loop.says(*round_of(3, 0.75))
    told = await loop.told()
    assert (told["iteration_count"], told["task_status"], told["actions"]) == (3, "done", {})


async def test_a_fold_that_was_checkpointed_goes_on_where_it_stood(
    ledger: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setattr(loop_reading, "_CHECKPOINT_AFTER_EVENTS", 1)
    loop = await looping(ledger, "t")
    before = await loop.told()
    store = ledger.services.store
    read: list[int] = []
    ledger.services.loops = loop_reading.LoopReader(store, ledger.services.reader)
    original = store.read_stream

    async def noting(stream: str, **how: Any) -> Any:
        events = await original(stream, **how)
        read.extend(event.seq for event in events if stream == "s-t")
        return events

    monkeypatch.setattr(store, "read_stream", noting)
    assert await loop.told() == before
    assert read == []
    await loop.says(*round_of(3, 0.75))
    assert (await loop.told())["iteration_count"] == 3
    assert len(read) == len(round_of(3, 0.75))


# What its pages tell


async def test_a_loop_is_told_by_its_rounds_its_verdicts_and_its_brakes(ledger: Desk) -> None:
    loop = await looping(ledger, "t", brakes={"max_iterations": 8})
    page = said(await loop.page())
    assert "Goes on at its next tick." in page
    assert "Round 2 Not passed, score 0.5" in page
    assert "Two tests fail." in page
    assert "implement 5 min 12 s" in page
    assert "2 of 8 rounds" in page
    assert "The last is 0.5, the best 0.5. 0 of 2 rounds passed." in page
    assert "/srv/shop" in page
    listed = said(await ledger.page("/loops"))
    assert "mend on mole Goes on at its next tick. Mend the test. 2 rounds, the last not passed with 0.5" in listed


async def test_a_halted_loop_says_why_on_its_page_on_its_goals_and_on_the_home_page(ledger: Desk) -> None:
    await ledger.post("/api/goals", id="g", title="A build to be trusted")
    loop = await looping(ledger, "t", goal_id="g")
    await loop.says(*HALT)
    page = said(await loop.page())
    assert "Halted: A round touched files outside of blast_radius.file_scope." in page
    assert "Halted in round 3" in page
    assert "etc/7" in page
    assert "and 2 more" in page
    [needs] = (await ledger.get("/api/fleet"))["needs_you"]
    assert (needs["task_id"], needs["loop_id"]) == ("t", "t")
    outside = "A round touched files outside of blast_radius.file_scope."
    assert needs["question"] == f"{outside} It touched what it may not."
    assert 'href="/loops/t"' in await ledger.page("/")
    assert 'href="/loops/t"' in await ledger.page("/tasks/t")
    assert 'href="/loops/t"' in await ledger.page("/goals/g")


async def test_a_loop_that_has_passed_needs_its_next_task_and_is_not_said_to_work(ledger: Desk) -> None:
    loop = await looping(ledger, "t", brakes={"stop_on_pass": True})
    assert (await ledger.get("/api/fleet"))["needs_you"] == []
    assert "Working for" in said(await ledger.page("/"))
    await loop.says(*round_of(3, 1.0, passed=True))
    [needs] = (await ledger.get("/api/fleet"))["needs_you"]
    assert (needs["question"], needs["loop_id"]) == ("The task has passed. It waits for the next one.", "t")
    home = await ledger.page("/")
    assert "Working for" not in home
    assert "Held, begun" in home
    assert home.count('href="/loops/t"') == 2  # among what needs a person, and among what runs
    page = await loop.page()
    assert "ledgerd loop task mend" in page
    await loop.says(("loop.task_set", {"task": "Another."}))
    assert (await ledger.get("/api/fleet"))["needs_you"] == []


async def test_a_loop_that_a_person_halted_needs_nobody(ledger: Desk) -> None:
    loop = await looping(ledger, "t")
    await loop.says(halted("human_intervention"), ("result", {"state": "suspended", "summary": "halted"}))
    assert (await ledger.get("/api/fleet"))["needs_you"] == []


async def test_the_newest_rounds_are_shown_and_the_older_ones_counted(ledger: Desk) -> None:
    loop = await looping(ledger, "t")
    await loop.says(*(event for tick in range(3, 105) for event in round_of(tick, 0.5)))
    page = await loop.page()
    assert page.count('class="row round') == 100
    assert 'href="/loops/t?rounds=1000"' in page
    assert (await ledger.page("/loops/t?rounds=1000")).count('class="row round') == 104
    assert (await ledger.http.get("/api/loops/t?rounds=1001")).status_code == 422


# What is asked of it


async def test_what_was_asked_is_pending_until_its_runner_has_taken_it(ledger: Desk) -> None:
    loop = await looping(ledger, "t")
    assert list((await loop.told())["actions"]) == ["halt"]
    assert (await loop.ask("halt")).status_code == 200
    page = said(await loop.page())
    assert "Asked, and not taken yet owner asked it to halt: It is late." in page
    assert "Asked to halt." in said(await ledger.page("/loops"))
    told = await loop.told()
    [request] = told["requests"]
    assert list(told["actions"]) == ["resume"]  # which takes it back
    await loop.says(halted("human_intervention", request=request["seq"]), ("result", {"state": "suspended"}))
    told = await loop.told()
    assert (told["requests"], list(told["actions"])) == ([], ["resume"])
    assert "not taken yet" not in await loop.page()


async def test_a_loop_that_a_plateau_holds_may_be_resumed_and_one_at_work_may_not(ledger: Desk) -> None:
    loop = await looping(ledger, "t", brakes={"score_plateau_window": 2})
    assert (await loop.ask("resume")).json()["code"] == "not_offered"
    await loop.says(*round_of(3, 0.5))
    assert "Held by a brake: its scores bring no gain any more." in await loop.page()
    assert list((await loop.told())["actions"]) == ["resume", "halt"]
    assert (await loop.ask("resume")).status_code == 200
    assert [one["action"] for one in (await loop.told())["requests"]] == ["resume"]


async def test_an_owner_asks_by_a_button_with_its_csrf_token_and_a_reader_has_none(ledger: Desk) -> None:
    loop = await looping(ledger, "t")
    await loop.says(*HALT)
    transport = ledger.http._transport
    pages = {}
    for role, name in (("owner", "owner"), ("reader", "wallboard")):
        _, token = await ledger.services.access.mint(role, name)
        async with httpx.AsyncClient(transport=transport, base_url="http://ledger") as http:
            await http.post("/login", data={"token": token, "next": "/"})
            pages[role] = (await http.get("/loops/t")).text
            csrf = re.findall(r'name="csrf" value="([^"]*)"', pages[role])[0]
            refused = await http.post("/loops/t/resume", data={"csrf": "wrong"})
            assert refused.status_code == 403
            answer = await http.post("/loops/t/resume", data={"csrf": csrf})
            assert answer.status_code == (303 if role == "owner" else 403)
            if role == "owner":
                assert answer.headers["location"] == "/loops/t"
                by_task = await http.post("/tasks/t/resume", data={"csrf": csrf})
                assert by_task.headers["location"] == "/loops/t"
                assert (await http.post("/loops/t/cancel", data={"csrf": csrf})).status_code == 409
    assert 'action="/loops/t/resume"' in pages["owner"]
    assert "<form method" not in pages["reader"].partition("<main")[2]
    assert [one["action"] for one in (await loop.told())["requests"]] == ["resume", "resume"]


def test_the_page_of_a_loop_that_has_ended_offers_nothing_and_says_so() -> None:
    ended = samples.detail(samples.stopped(), task_status="cancelled", actions={})
    page = samples.rendered(ended)
    assert "Cancelled with its task." in said(page)
    assert "ask-halt" not in page
    assert 'class="bar"' in page
    assert "action=" not in samples.rendered(samples.detail(samples.at_work()), READER).partition("<main")[2]
