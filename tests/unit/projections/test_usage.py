from __future__ import annotations

from typing import Any

import pytest

from tests.unit.projections.story import Story


def two_tasks() -> Story:
    return Story().started_goal().opened("a", "1").task("2", "7").opened("b", "2")


def report(story: Story, session_id: str, seq: int, message_id: str | None, **counts: Any) -> Story:
    payload = counts if message_id is None else {"message_id": message_id} | counts
    return story.said(session_id, seq, "usage", payload)


def test_usage_repeated_for_each_block_of_a_message_counts_once_by_its_last_report() -> None:
    story = two_tasks()
    report(story, "a", 1, "m1", input_tokens=10, output_tokens=1)
    report(story, "a", 2, "m1", input_tokens=10, output_tokens=5)
    report(story, "a", 3, "m2", input_tokens=7, output_tokens=7)
    usage = story.goal_json()["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["cost_usd"]) == (17, 12, None)


def test_the_last_report_is_the_one_with_the_highest_seq_not_the_one_that_came_last() -> None:
    story = report(two_tasks(), "a", 9, "m1", output_tokens=5)
    report(story, "a", 2, "m1", output_tokens=1)
    assert story.goal_json()["usage"]["output_tokens"] == 5


def test_a_fork_that_copies_its_parents_history_counts_nothing_twice() -> None:
    story = two_tasks()
    report(story, "a", 1, "m1", output_tokens=5, cost_usd=0.1)
    story.opened("fork", "1", resumed_from="a")
    report(story, "fork", 1, "m1", output_tokens=5, cost_usd=0.1)
    report(story, "fork", 2, "m2", output_tokens=2, cost_usd=0.2)
    assert story.goal_json()["usage"]["output_tokens"] == 7
    assert story.goal_json()["usage"]["cost_usd"] == 0.3
    assert story.session_json("a")["usage"]["output_tokens"] == 5
    assert story.session_json("fork")["usage"]["output_tokens"] == 2


def test_a_copy_that_came_first_still_counts_for_the_session_that_was_opened_first() -> None:
    story = two_tasks().opened("fork", "1")
    report(story, "fork", 1, "m1", output_tokens=5)
    report(story, "a", 1, "m1", output_tokens=5)
    assert story.session_json("a")["usage"]["output_tokens"] == 5
    assert story.session_json("fork")["usage"]["output_tokens"] == 0


def test_without_a_message_id_each_slot_of_a_task_counts_once() -> None:
    story = two_tasks().opened("churn", "1")
    for session in ("a", "churn", "b"):
        report(story, session, 1, None, input_tokens=3)
        report(story, session, 2, None, input_tokens=3)
    assert story.task_json("1")["usage"]["input_tokens"] == 6
    assert story.task_json("2")["usage"]["input_tokens"] == 6
    assert story.goal_json()["usage"]["input_tokens"] == 12


def test_all_five_totals_are_shown() -> None:
    counts = {
        "input_tokens": 1,
        "output_tokens": 2,
        "cache_read_tokens": 3,
        "cache_write_tokens": 4,
        "cost_usd": 0.25,
    }
    assert report(two_tasks(), "a", 1, "m", **counts).goal_json()["usage"] == counts | {"unpriced": {}}


def test_a_cost_of_nothing_is_a_cost() -> None:
    assert report(two_tasks(), "a", 1, "m", cost_usd=0).goal_json()["usage"]["cost_usd"] == 0


def test_a_later_report_without_a_cost_takes_the_cost_back() -> None:
    story = report(two_tasks(), "a", 1, "m", cost_usd=1)
    assert report(story, "a", 2, "m", input_tokens=1).goal_json()["usage"]["cost_usd"] is None


@pytest.mark.parametrize("value", [-1, True, "12", 1.5, 10**30, None, [3]])
def test_what_cannot_be_a_count_counts_nothing(value: object) -> None:
    assert report(two_tasks(), "a", 1, "m", input_tokens=value).goal_json()["usage"]["input_tokens"] == 0


@pytest.mark.parametrize("value", [-0.1, True, "1", 10**30, 10**400, None])
def test_what_cannot_be_a_cost_costs_nothing(value: object) -> None:
    assert report(two_tasks(), "a", 1, "m", cost_usd=value).goal_json()["usage"]["cost_usd"] is None


def test_tokens_of_reports_that_name_no_cost_are_kept_by_model() -> None:
    story = two_tasks().opened("c", "1", model="opened-with")
    report(story, "a", 1, "m1", input_tokens=3, model="one")
    report(story, "a", 2, "m2", input_tokens=4, model="one", cost_usd=0.1)
    report(story, "c", 1, "m3", output_tokens=5)
    report(story, "b", 1, "m4", cache_read_tokens=6)
    usage = story.goal_json()["usage"]
    assert usage["cost_usd"] == 0.1
    assert usage["unpriced"] == {
        "": {"input": 0, "output": 0, "cache_read": 6, "cache_write": 0},
        "one": {"input": 3, "output": 0, "cache_read": 0, "cache_write": 0},
        "opened-with": {"input": 0, "output": 5, "cache_read": 0, "cache_write": 0},
    }


def test_a_last_report_that_names_the_cost_leaves_nothing_unpriced() -> None:
    story = report(two_tasks(), "a", 1, "m1", input_tokens=3, model="one")
    report(story, "a", 2, "m1", input_tokens=3, model="one", cost_usd=0.1)
    assert story.goal_json()["usage"]["unpriced"] == {}
