"""What owners ask of a loop, and what the saddle that runs it is told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from ledger.commands.requests import REQUESTS_MAX
from tests.unit.http.in_process import Desk, desk


@pytest.fixture
async def loop() -> AsyncIterator[Desk]:
    """A ledger in which the session `l` loops on the task `1`, and `a` is an agent of it."""
    async with desk() as made:
        await made.post("/api/tasks", id="1", title="Loop mend")
        await made.open("l", "1", agent="ledgerd-loop")
        yield made


async def heard(loop: Desk, after: int | None = None) -> list[Any]:
    query = "" if after is None else f"&after={after}"
    return list((await loop.get(f"/api/saddle/requests?session_id=l{query}"))["requests"])


async def test_a_loop_hears_what_its_owner_asks_each_once(loop: Desk) -> None:
    assert await heard(loop) == []
    assert "halt" in (await loop.post("/api/loops/1/halt", reason="it spends too much"))["actions"]
    [halt] = await heard(loop)
    assert halt == {
        "seq": halt["seq"],
        "action": "halt",
        "reason": "it spends too much",
        "by": "owner",
        "at": "2025-12-01T02:10:00Z",
    }
    assert await heard(loop, halt["seq"]) == []
    await loop.push("l", (0, "result", {"state": "suspended", "summary": "halted by owner"}))
    await loop.post("/api/tasks/1/block", reason="something else that is decided about the task")
    await loop.post("/api/tasks/1/resume")
    [resume] = await heard(loop, halt["seq"])
    assert (resume["action"], resume["reason"]) == ("resume", "")
    assert [one["action"] for one in await heard(loop)] == ["halt", "resume"]


async def test_many_requests_are_told_a_page_at_a_time(loop: Desk) -> None:
    for number in range(REQUESTS_MAX + 3):
        await loop.post("/api/loops/1/halt", reason=str(number))
    first = await heard(loop)
    rest = await heard(loop, first[-1]["seq"])
    assert [int(one["reason"]) for one in [*first, *rest]] == list(range(REQUESTS_MAX + 3))
    assert len(first) == REQUESTS_MAX


async def test_only_the_saddle_of_a_loop_hears_of_it(loop: Desk) -> None:
    _, token = await loop.services.access.mint("saddle", "bellows")
    others = {"Authorization": f"Bearer {token}"}
    for session_id in ("l", "none", "@task/1"):
        answer = await loop.http.get(f"/api/saddle/requests?session_id={session_id}", headers=others)
        assert answer.status_code in (404, 422)
    assert (await loop.http.post("/api/loops/1/halt", headers=others)).status_code == 403


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/api/loops/none/halt", 404, "unknown_loop"),
        ("/api/loops/2/halt", 404, "unknown_loop"),
        ("/api/loops/1/resume", 409, "not_offered"),
        ("/api/loops/1/cancel", 409, "not_offered"),
        ("/api/tasks/2/halt", 409, "not_offered"),
    ],
)
async def test_what_is_no_loop_or_not_open_to_one_is_refused(loop: Desk, path: str, status: int, code: str) -> None:
    await loop.post("/api/tasks", id="2", title="No loop")
    answer = await loop.http.post(path)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert await heard(loop) == []


@pytest.mark.parametrize("query", ["", "session_id=", "session_id=l&after=x", "session_id=l&after=-2"])
async def test_an_ask_that_names_no_session_or_no_seq_is_refused(loop: Desk, query: str) -> None:
    answer = await loop.http.get(f"/api/saddle/requests?{query}")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_field")


async def test_the_page_of_a_loops_task_offers_what_may_be_asked(loop: Desk) -> None:
    page = await loop.page("/tasks/1")
    assert 'action="/tasks/1/halt"' in page
    assert 'action="/tasks/1/resume"' not in page


async def test_another_session_on_a_loops_task_says_nothing_of_the_loop(loop: Desk) -> None:
    """The hooks of an agent, for one, say that they report the same as the agents' session, and end with it."""
    task = {"id": "loop-mend-0123abcd", "title": "Loop mend"}
    await loop.post("/api/saddle/sessions", session_id=task["id"], task=task, agent="ledgerd-loop")
    agents = f"{task['id']}-agents"
    await loop.open(agents, task["id"], parent_session_id=task["id"], agent="ledgerd-loop-agents")
    await loop.post("/api/saddle/sessions", session_id="hook", same_run_as=agents, agent="claude-code")
    await loop.result("hook", "done", "the agent has ended")
    told = await loop.get(f"/api/tasks/{task['id']}")
    assert told["status"] == "working"
    [hook] = [one for one in told["sessions"] if one["session_id"] == "hook"]
    assert hook["parent_session_id"] == task["id"]
