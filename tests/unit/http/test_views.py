from __future__ import annotations

from ledger.http import views
from tests.unit.http.in_process import desk


async def test_an_end_says_how_often_and_by_whom_it_was_delivered() -> None:
    async with desk() as ledger:
        goal, run = await ledger.started_goal("Port it", "a")
        await ledger.open("b", run)
        await ledger.result("a", "failed", "no memory", times=40)
        await ledger.result("b", "failed", "no memory", times=25)
        found = await ledger.get(f"/api/goals/{goal}")
        [failed] = [row for row in found["events"] if row["kind"] == "goal-failed"]
        assert (failed["deliveries"], failed["copies"], failed["said_by"]) == (65, 2, ["a", "b"])
        assert (failed["attempt"], failed["tried_again"]) == (1, False)
        [item] = (await ledger.get("/api/fleet"))["failed"]
        assert (item["deliveries"], item["copies"]) == (65, 2)
        await ledger.post(f"/api/goals/{goal}/reopen")
        [failed] = [row for row in (await ledger.get(f"/api/goals/{goal}"))["events"] if row["kind"] == "goal-failed"]
        assert failed["tried_again"] is True


async def test_the_sessions_that_lack_or_repeat_most_are_counted_first() -> None:
    async with desk() as ledger:
        goal, run = await ledger.started_goal("Port it", "whole")
        await ledger.open("gappy", run, contiguous=True)
        for _ in range(2):
            await ledger.push("whole", (0, "comment", {"body": "one"}))
        await ledger.push("gappy", (0, "comment", {"body": "two"}), (4, "comment", {"body": "three"}))
        found = await ledger.get(f"/api/goals/{goal}")
        assert [(one["session_id"], one["missing"], one["duplicates"]) for one in found["arrivals"]] == [
            ("gappy", 3, 0),
            ("whole", 0, 1),
        ]
        assert (found["integrity"]["missing"], found["integrity"]["duplicates"]) == (3, 1)


async def test_the_fleet_says_what_each_is_doing_what_it_spent_and_how_whole_it_is() -> None:
    async with desk() as ledger:
        _, run = await ledger.started_goal("Port it", "a")
        task = (await ledger.post("/api/tasks", title="Alone"))["id"]
        await ledger.open("b", task)
        await ledger.push("a", (0, "comment", {"body": "The grammar is ported."}), (1, "usage", {"cost_usd": 2.5}))
        await ledger.push("a", (0, "comment", {"body": "Another grammar."}))
        fleet = await ledger.get("/api/fleet")
        told = {item["title"]: (item["current_command"], item["cost_usd"]) for item in fleet["running"]}
        assert told == {"Port it": ("The grammar is ported.", 2.5), "Alone": (None, None)}
        assert fleet["integrity"]["conflicts"] == 1
        assert fleet["log_events"] == sum(await ledger.services.store.heads())
        ledger.wait(600)
        silent = {item["task_id"]: item["current_command"] for item in (await ledger.get("/api/fleet"))["silent"]}
        assert silent == {run: "The grammar is ported.", task: None}


async def test_what_ended_says_when_it_began() -> None:
    async with desk() as ledger:
        await ledger.started_goal("Port it", "a")
        ledger.wait(90)
        await ledger.result("a", "done", "ported")
        [ended] = (await ledger.get("/api/fleet"))["ended"]
        assert (ended["started_at"], ended["ended_at"]) == ("2025-12-01T02:10:00Z", "2025-12-01T02:11:30Z")


async def test_the_past_of_a_goal_is_a_few_moments_that_lead_to_how_it_stood() -> None:
    async with desk() as ledger:
        goal, _ = await ledger.started_goal("Port it", "a")
        for seq in range(50):
            await ledger.push("a", (seq, "comment", {"body": f"Step {seq}."}))
        past = await views.past_of_goal(ledger.services, goal, 10)
        assert len(past) == 10
        seen = [len((await ledger.get(f"/api/goals/{goal}?at={moment['cursor']}"))["events"]) for moment in past]
        assert seen == sorted(set(seen))
        assert seen[-1] == len((await ledger.get(f"/api/goals/{goal}"))["events"])


async def test_agents_are_named_with_their_hosts() -> None:
    async with desk() as ledger:
        goal, run = await ledger.started_goal("Port it", "a")
        for session in ("b", "c"):
            await ledger.open(session, run, agent="codex", host="mole")
        assert (await ledger.get(f"/api/goals/{goal}"))["agents"] == [
            {"agent": "codex", "host": "mole", "sessions": 2},
            {"agent": None, "host": "owner", "sessions": 1},
        ]
