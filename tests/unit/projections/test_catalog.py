from __future__ import annotations

from typing import Any

import pytest

from projections import catalog as catalogs
from projections.catalog import CATALOG, Catalog, statuses, work_order
from projections.fold import fold
from tests.unit.projections.story import Story


def queue(catalog: Catalog) -> list[str]:
    return [task.id for task in catalog.claimable()]


def many_tasks(count: int = 7) -> Story:
    story = Story()
    for number in range(1, count + 1):
        story.task(str(number), project_id=str(number % 2))
    return story


def test_tasks_wait_in_the_order_in_which_they_became_queued() -> None:
    story = many_tasks(3)
    story.decided("@task/1", "task.claimed", {"session_id": "a", "saddle": "anvil"}).opened("a", "1")
    assert queue(story.catalog()) == ["2", "3"]
    story.result("a", "failed").requeued("1")
    assert queue(story.catalog()) == ["2", "3", "1"]


def test_a_blocked_task_is_not_handed_out_and_keeps_its_place() -> None:
    story = many_tasks(3).decided("@task/1", "task.blocked", {"reason": "no key"})
    assert queue(story.catalog()) == ["2", "3"]
    assert queue(story.decided("@task/1", "task.unblocked").catalog()) == ["1", "2", "3"]


def test_a_claim_takes_a_task_from_the_queue_before_its_session_is_there() -> None:
    story = many_tasks(1).decided("@task/1", "task.claimed", {"session_id": "a", "saddle": "anvil"})
    assert queue(story.catalog()) == []
    assert story.catalog().work.tasks["1"].status == "working"


def test_a_goals_run_is_queued_and_leaves_the_queue_when_the_goal_is_cancelled() -> None:
    story = Story().started_goal()
    assert queue(story.catalog()) == ["1"]
    story.decided("@goal/7", "goal.cancelled", {"reason": "no"})
    assert queue(story.catalog()) == []
    assert story.catalog().goals.statuses() == {"cancelled": 1}
    assert story.catalog().tasks.statuses() == {"cancelled": 1}


def test_lists_are_newest_first_and_lead_to_the_next_page() -> None:
    catalog = many_tasks().catalog()
    first = catalogs.tasks(catalog, limit=3)
    assert [item["id"] for item in first["items"]] == ["7", "6", "5"]
    second = catalogs.tasks(catalog, limit=3, after=first["next"])
    last = catalogs.tasks(catalog, limit=3, after=second["next"])
    assert [item["id"] for item in second["items"] + last["items"]] == ["4", "3", "2", "1"]
    assert last["next"] is None


def test_a_page_that_holds_exactly_the_rest_leads_nowhere() -> None:
    assert catalogs.tasks(many_tasks(3).catalog(), limit=3)["next"] is None


def test_lists_are_filtered_by_status_and_project() -> None:
    story = many_tasks()
    for number in ("2", "3", "4"):
        story.opened(f"s{number}", number).result(f"s{number}", "done")
    catalog = story.catalog()

    def found(**filters: Any) -> list[str]:
        return [item["id"] for item in catalogs.tasks(catalog, **filters)["items"]]

    assert found(status="done") == ["4", "3", "2"]
    assert found(status="done", project_id="0") == ["4", "2"]
    assert found(status="queued", project_id="1") == ["7", "5", "1"]
    assert found(status="failed") == []


def test_an_unknown_place_in_a_list_is_an_error() -> None:
    with pytest.raises(KeyError):
        catalogs.tasks(many_tasks(1).catalog(), after="99")


def test_a_goals_item_says_how_it_stands() -> None:
    story = Story().started_goal().task("2", "7").opened("a", "1").result("a", "failed", "no")
    [item] = catalogs.goals(story.catalog())["items"]
    assert {name: item[name] for name in ("status", "run_task_id", "attempt", "tasks", "summary")} == {
        "status": "failed",
        "run_task_id": "1",
        "attempt": 1,
        "tasks": 2,
        "summary": "no",
    }
    assert item["updated_at"] > item["created_at"]


def test_the_next_number_is_one_above_the_highest_in_use() -> None:
    story = Story()
    assert story.catalog().next_task_number == 1
    story.task("4").task("2").task("name").task("007").task("9" * 40)
    assert story.catalog().next_task_number == 5
    assert story.goal("12").catalog().next_goal_number == 13


def test_projects_are_listed() -> None:
    catalog = Story().project("1").project("2").catalog()
    page = catalogs.projects(catalog, limit=1)
    assert [item["title"] for item in page["items"]] == ["Project 2"]
    assert [item["id"] for item in catalogs.projects(catalog, after=page["next"])["items"]] == ["1"]
    assert catalog.next_project_number == 3


def test_a_receipt_names_the_status_of_task_and_goal() -> None:
    catalog = Story().started_goal().opened("a", "1").result("a", "suspended", seq=1).task("12").catalog()
    assert statuses(catalog, "1") == ({"id": "1", "status": "suspended"}, {"id": "7", "status": "suspended"})
    assert statuses(catalog, "12") == ({"id": "12", "status": "queued"}, None)
    assert statuses(catalog, "99") == statuses(catalog, None) == (None, None)


def test_a_work_order_says_what_to_do_and_where() -> None:
    catalog = Story().goal(branch_name="fix/it").task("2", "7", brief="Do it.").catalog()
    order = work_order(catalog.work.tasks["2"], catalog)
    assert (order["id"], order["brief"], order["goal_id"], order["branch_name"]) == ("2", "Do it.", "7", "fix/it")


def test_the_last_seq_of_a_stream_of_its_own_is_known() -> None:
    work = Story().started_goal().decided("@task/1", "task.unblocked").opened("a", "1").catalog().work
    assert (work.goals["7"].last_seq, work.tasks["1"].last_seq) == (1, 1)


def test_events_that_decide_nothing_may_be_left_away() -> None:
    story = Story().started_goal().opened("a", "1").comment("a", 1, "x").command("a", 2, "make").result("a", "done")
    decisive = [event for event in story.events if event.kind not in ("comment", "tool_call")]
    assert fold(CATALOG, CATALOG.initial, decisive) == story.catalog()


def test_sessions_are_counted_by_their_state() -> None:
    story = Story().task("12").opened("a", "12").opened("b", "12").opened("c", "12").result("a", "waiting", seq=1)
    story.result("b", "done").result("b", "failed", seq=3)
    assert dict(story.catalog().session_states) == {"working": 1, "waiting": 1, "done": 1}


def test_tasks_that_a_loop_works_on_or_once_did_are_found_the_newest_first_each_once() -> None:
    story = many_tasks(4)
    for session, task, agent in (("a", "1", "ledgerd-loop"), ("b", "3", "codex"), ("c", "4", "ledgerd-loop")):
        story.opened(session, task, agent=agent)
    story.opened("again", "1", agent="ledgerd-loop").result("a", "done").requeued("1")
    assert [task.id for task in catalogs.loops(story.catalog())] == ["4", "1"]
    assert [task.id for task in catalogs.loops(story.catalog(), after="4")] == ["1"]
    with pytest.raises(KeyError):
        catalogs.loops(story.catalog(), after="none")
