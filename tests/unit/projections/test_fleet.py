from __future__ import annotations

from typing import Any

from projections.fleet import Heartbeat, fleet_view, working_sessions
from tests.unit.projections.story import SECOND_NS, START_NS, Story

NOW = START_NS + 1000 * SECOND_NS
MINUTE_NS = 60 * SECOND_NS


def view(story: Story, pulses: dict[str, int] | None = None, **heartbeats: Heartbeat) -> dict[str, Any]:
    return fleet_view(story.catalog(), pulses or {}, heartbeats, now=NOW, silent_after=5 * MINUTE_NS)


def test_an_empty_ledger_has_an_empty_fleet() -> None:
    assert view(Story()) == {
        "saddles": [],
        "needs_you": [],
        "failed": [],
        "silent": [],
        "running": [],
        "ended": [],
        "counts": {"goals": {}, "tasks": {}, "sessions": {}},
        "at": "2023-11-14T22:30:00Z",
    }


def test_a_waiting_task_needs_a_person() -> None:
    story = Story().started_goal().opened("a", "1").said("a", 1, "waiting", {"question": "which?"})
    assert view(story)["needs_you"] == [
        {
            "task_id": "1",
            "goal_id": "7",
            "title": "Task 1",
            "question": "which?",
            "since": "2023-11-14T22:13:25Z",
            "saddle": "anvil",
        }
    ]
    assert view(story.result("a", "working", seq=2))["needs_you"] == []


def test_a_failure_is_shown_until_the_task_is_requeued() -> None:
    story = Story().task("12").opened("a", "12").result("a", "failed", "no").opened("b", "12")
    [failed] = view(story.result("b", "failed", "no"))["failed"]
    assert (failed["task_id"], failed["summary"], failed["attempt"], failed["copies"]) == ("12", "no", 1, 2)
    assert view(story.requeued("12"))["failed"] == []


def test_a_working_session_that_says_nothing_for_long_is_silent() -> None:
    story = Story().task("12").opened("a", "12").task("13").opened("b", "13").task("14").opened("c", "14")
    story.result("c", "suspended", seq=1)
    pulses = {"a": NOW - 6 * MINUTE_NS, "b": NOW - 4 * MINUTE_NS, "c": NOW - 60 * MINUTE_NS}
    [silent] = view(story, pulses)["silent"]
    assert (silent["task_id"], silent["session_id"], silent["saddle"]) == ("12", "a", "anvil")
    assert silent["since"] == "2023-11-14T22:24:00Z"
    assert [one["session_id"] for one in view(story)["silent"]] == ["a", "b"]


def test_a_loop_rests_between_its_rounds_and_counts_as_one_agent_while_its_agents_say_something() -> None:
    story = Story().task("12").opened("loop", "12", agent="ledgerd-loop")
    story.opened("loop-agents", "12", agent="ledgerd-loop-agents", parent_session_id="loop")
    [resting] = view(story, {"loop": NOW - 60 * MINUTE_NS, "loop-agents": NOW - 59 * MINUTE_NS})["saddles"]
    assert (resting["working"], resting["sessions"]) == (0, 2)
    assert view(story)["silent"] == []
    [busy] = view(story, {"loop": NOW - 60 * MINUTE_NS, "loop-agents": NOW - MINUTE_NS})["saddles"]
    assert busy["working"] == 1


def test_saddles_are_known_by_heartbeats_and_by_their_sessions() -> None:
    story = Story().task("12").opened("a", "12", saddle="anvil").opened("b", "12", saddle="anvil")
    story.task("13").opened("c", "13", saddle="forge").result("c", "waiting", seq=1)
    story.task("14").opened("d", "14", saddle="gone").result("d", "done")
    heartbeats = {"anvil": Heartbeat(START_NS, "box", "1.0"), "idle": Heartbeat(START_NS)}
    saddles = {one["name"]: one for one in view(story, {"a": NOW}, **heartbeats)["saddles"]}
    assert set(saddles) == {"anvil", "forge", "idle"}
    assert saddles["anvil"] == {
        "name": "anvil",
        "host": "box",
        "version": "1.0",
        "last_contact": "2023-11-14T22:30:00Z",
        "working": 2,
        "sessions": 2,
    }
    assert (saddles["forge"]["working"], saddles["forge"]["sessions"]) == (0, 1)
    assert (saddles["idle"]["sessions"], saddles["idle"]["host"]) == (0, None)


def test_what_runs_and_what_ended_is_listed_newest_first_and_a_run_counts_as_its_goal() -> None:
    story = Story().started_goal("7", "1").opened("a", "1").task("12").opened("b", "12")
    assert [(one["kind"], one["id"]) for one in view(story)["running"]] == [("task", "12"), ("goal", "7")]
    story.result("b", "failed").task("13").opened("c", "13").result("c", "done").result("a", "done")
    assert view(story)["running"] == []
    ended = view(story)["ended"]
    assert [(one["kind"], one["id"], one["status"]) for one in ended] == [
        ("goal", "7", "done"),
        ("task", "13", "done"),
        ("task", "12", "failed"),
    ]
    assert ended[0]["ended_at"] > ended[1]["ended_at"] > ended[2]["ended_at"]


def test_everything_is_counted() -> None:
    story = Story().started_goal().opened("a", "1").task("12").task("13").opened("b", "13").result("b", "done")
    assert view(story)["counts"] == {
        "goals": {"running": 1},
        "tasks": {"done": 1, "queued": 1, "working": 1},
        "sessions": {"done": 1, "working": 1},
    }


def test_the_sessions_asked_about_are_those_of_open_attempts() -> None:
    story = Story().task("12").opened("a", "12").result("a", "failed").requeued("12").opened("b", "12")
    story.task("13").opened("c", "13").opened("d", "13").result("d", "waiting", seq=1).task("14")
    assert sorted(working_sessions(story.catalog())) == ["b", "c", "d"]
