"""Given what has happened, when somebody decides, then these facts follow, or the reason why not."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from ledger.commands.deciding import decide_goal, decide_task
from ledger.commands.writing import Fact
from ledger.errors import NotOffered
from ledger.events import kinds
from projections.actions import goal_actions, task_actions
from tests.unit.projections.story import Story

GOAL = "7"


def when_goal(story: Story, action: str, reason: str = "") -> list[Fact]:
    work = story.catalog().work
    return decide_goal(action, work.goals[GOAL], work, "42", reason)


def when_task(story: Story, action: str, task_id: str = "1", reason: str = "") -> list[Fact]:
    return decide_task(action, story.catalog().work.tasks[task_id], reason)


def then(story: Story, facts: Iterable[Fact]) -> None:
    """The facts come to stand in the log."""
    for fact in facts:
        if fact.kind == kinds.TASK_CREATED:
            story.task(fact.payload["id"], fact.payload["goal_id"], fact.payload["kind"])
        else:
            story.decided(fact.stream, fact.kind, fact.payload)


def named(facts: Iterable[Fact]) -> list[tuple[str, str]]:
    return [(fact.stream, fact.kind) for fact in facts]


# Goals


def test_starting_a_goal_makes_its_run_task_from_its_words() -> None:
    given = Story().goal(title="Port it", brief="All of it", project_id="3")
    started, task = when_goal(given, "start")
    assert (started.stream, started.kind, started.payload) == ("@goal/7", "goal.started", {"run_task_id": "42"})
    assert (task.stream, task.kind) == ("@task/42", "task.created")
    assert task.payload == {
        "id": "42",
        "kind": "goal_run",
        "title": "Port it",
        "brief": "All of it",
        "project_id": "3",
        "goal_id": "7",
    }


def test_a_goal_that_runs_is_not_started_again() -> None:
    with pytest.raises(NotOffered, match=r"goal 7 is running: start is not open to it, cancel is"):
        when_goal(Story().started_goal(), "start")


@pytest.mark.parametrize("end", ["done", "failed", "cancelled"])
def test_a_goal_that_ended_offers_only_to_be_reopened(end: str) -> None:
    given = Story().started_goal().opened("s", "1").result("s", end)
    for action in ("start", "cancel"):
        with pytest.raises(NotOffered):
            when_goal(given, action)
    assert named(when_goal(given, "reopen")) == [("@goal/7", "goal.reopened"), ("@task/1", "task.requeued")]


def test_reopening_a_goal_that_never_ran_makes_its_run_task() -> None:
    given = Story().goal().decided("@goal/7", "goal.cancelled")
    facts = when_goal(given, "reopen")
    assert named(facts) == [("@goal/7", "goal.reopened"), ("@task/42", "task.created")]
    assert facts[0].payload == {"run_task_id": "42"}


@pytest.mark.parametrize("state", ["working", "waiting", "suspended"])
def test_an_open_goal_can_be_cancelled_whatever_its_run_says(state: str) -> None:
    given = Story().started_goal().opened("s", "1").result("s", state, seq=0)
    facts = when_goal(given, "cancel", "enough")
    assert named(facts) == [("@goal/7", "goal.cancelled"), ("@task/1", "task.cancelled")]
    assert all(fact.payload == {"reason": "enough"} for fact in facts)


def test_cancelling_a_goal_leaves_the_tasks_that_have_ended() -> None:
    given = Story().started_goal().task("2", GOAL).task("3", GOAL).opened("s", "2").result("s", "done")
    assert ("@task/2", "task.cancelled") not in named(when_goal(given, "cancel"))
    assert ("@task/3", "task.cancelled") in named(when_goal(given, "cancel"))


@pytest.mark.parametrize("action", ["requeue", "block", "fly", ""])
def test_what_is_no_decision_about_goals_is_not_offered(action: str) -> None:
    with pytest.raises(NotOffered):
        when_goal(Story().goal(), action)


# Tasks


@pytest.mark.parametrize("state", ["queued", "working", "waiting", "suspended"])
def test_an_open_task_can_be_cancelled_and_blocked_but_not_requeued(state: str) -> None:
    given = Story().task("1")
    if state != "queued":
        given.opened("s", "1").result("s", state, seq=0)
    assert when_task(given, "cancel", reason="no") == [Fact("@task/1", "task.cancelled", {"reason": "no"})]
    assert when_task(given, "block", reason="wait") == [Fact("@task/1", "task.blocked", {"reason": "wait"})]
    for action in ("requeue", "unblock"):
        with pytest.raises(NotOffered, match=f"task 1 is {state}: {action} is not open"):
            when_task(given, action)


@pytest.mark.parametrize("end", ["done", "failed", "cancelled"])
def test_a_task_that_ended_offers_only_to_be_requeued(end: str) -> None:
    given = Story().task("1").opened("s", "1").result("s", end)
    assert when_task(given, "requeue") == [Fact("@task/1", "task.requeued", {})]
    for action in ("cancel", "block", "unblock"):
        with pytest.raises(NotOffered):
            when_task(given, action)


def test_a_blocked_task_can_be_unblocked_and_not_blocked_again() -> None:
    given = Story().task("1").decided("@task/1", "task.blocked", {"reason": "wait"})
    assert when_task(given, "unblock") == [Fact("@task/1", "task.unblocked", {})]
    with pytest.raises(NotOffered):
        when_task(given, "block")


# Offers and decisions


def histories() -> Iterable[Story]:
    """A goal and its run task in every status."""
    yield Story().goal()
    yield Story().started_goal()
    yield Story().goal().decided("@goal/7", "goal.cancelled")
    for state in ("working", "waiting", "suspended"):
        yield Story().started_goal().opened("s", "1").result("s", state, seq=0)
    for state in ("done", "failed", "cancelled"):
        yield Story().started_goal().opened("s", "1").result("s", state)
        yield Story().started_goal().opened("s", "1").result("s", state).requeued("1")
    yield Story().started_goal().decided("@task/1", "task.blocked")


@pytest.mark.parametrize("number", range(len(list(histories()))))
def test_every_decision_that_is_offered_can_be_taken_and_moves_on(number: int) -> None:
    given = list(histories())[number]
    for action in given.goal_json()["actions"]:
        story = list(histories())[number]
        before = story.goal_json()
        then(story, when_goal(story, action))
        after = story.goal_json()
        assert (after["status"], after["actions"].keys()) != (before["status"], before["actions"].keys())
        assert action not in after["actions"]
    for task_id in given.catalog().work.tasks:
        for action in given.task_json(task_id)["actions"]:
            story = list(histories())[number]
            then(story, when_task(story, action, task_id))
            assert action not in story.task_json(task_id)["actions"]


@pytest.mark.parametrize("number", range(len(list(histories()))))
def test_the_offers_of_the_json_are_those_that_the_deciders_check(number: int) -> None:
    story = list(histories())[number]
    work = story.catalog().work
    assert set(story.goal_json()["actions"]) == set(goal_actions(work.status_of(work.goals[GOAL])))
    for task in work.tasks.values():
        offered = task_actions(task.status, blocked=bool(task.blocks), loops=task.loops)
        assert set(story.task_json(task.id)["actions"]) == set(offered)


def test_what_is_asked_of_a_loop_is_a_fact_of_its_task() -> None:
    given = Story().task("1").opened("l", "1", agent="ledgerd-loop")
    [halt] = when_task(given, "halt", reason="it spends too much")
    assert (halt.stream, halt.kind) == ("@task/1", "loop.halt_requested")
    assert halt.payload == {"reason": "it spends too much"}
    with pytest.raises(NotOffered):
        when_task(given, "resume")
    [resume] = when_task(given.result("l", "suspended", seq=0), "resume")
    assert resume.kind == "loop.resume_requested"
    with pytest.raises(NotOffered):
        when_task(Story().task("1").opened("s", "1", agent="claude"), "halt")
