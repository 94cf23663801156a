from __future__ import annotations

import msgspec
import pytest

from projections.goal import Integrity, goal_view, session_view, task_view
from projections.session import StreamFacts
from tests.unit.projections.story import Story, kinds_of, texts_of


def running_goal() -> Story:
    return Story().started_goal().opened("run", "1")


def test_a_goal_is_created_then_started_then_done() -> None:
    story = Story().goal()
    assert story.goal_json()["status"] == "created"
    assert list(story.goal_json()["actions"]) == ["start", "cancel"]
    story = running_goal()
    assert story.goal_json()["status"] == "running"
    assert story.goal_json()["run_task_id"] == "1"
    story.result("run", "done", "merged")
    json = story.goal_json()
    assert (json["status"], json["summary"]) == ("done", "merged")
    assert json["ended_at"] is not None
    assert json["actions"] == {"reopen": {"method": "POST", "href": "/api/goals/7/reopen"}}
    assert kinds_of(story.rows()) == ["goal-created", "goal-started", "goal-done"]


@pytest.mark.parametrize("state", ["suspended", "waiting"])
def test_a_parked_run_shows_on_the_goal(state: str) -> None:
    story = running_goal().result("run", state, "for now", seq=1)
    assert story.task_json("1")["status"] == state
    assert story.goal_json()["status"] == state
    assert list(story.goal_json()["actions"]) == ["cancel"]
    story.result("run", "working", seq=2)
    assert story.goal_json()["status"] == "running"
    assert kinds_of(story.rows())[2:] == [state, "resumed"]


def test_one_failed_attempt_is_one_goal_failed_row_ever() -> None:
    story = running_goal().result("run", "suspended", seq=1).result("run", "failed", "no")
    once = story.goal_json()
    story.opened("churn", "1").result("churn", "suspended", seq=1).result("churn", "failed", "no")
    json = story.goal_json()
    assert (json["status"], json["blocks"], json["digest"]) == ("failed", [], once["digest"])
    assert [row["copies"] for row in json["events"] if row["kind"] == "goal-failed"] == [2]
    assert story.task_json("1")["status"] == "failed"


def test_each_failed_attempt_of_the_run_is_a_row() -> None:
    story = running_goal().result("run", "failed", "one").requeued("1").opened("run 2", "1")
    assert story.goal_json()["status"] == "running"
    story.result("run 2", "failed", "two").result("run", "done", seq=99)
    rows = story.rows()
    assert texts_of(rows, "goal-failed") == ["one", "two"]
    assert texts_of(rows, "goal-started") == ["Started", "Started again, attempt 2"]
    assert story.goal_json()["attempt"] == 2


def test_a_failing_ordinary_task_fails_no_goal() -> None:
    story = running_goal().task("2", "7").opened("b", "2").result("b", "failed", "flaky")
    json = story.goal_json()
    assert json["status"] == "running"
    assert [row["kind"] for row in json["events"]][-2:] == ["task-started", "task-failed"]
    assert [(task["id"], task["kind"], task["status"], task["summary"]) for task in json["tasks"]] == [
        ("1", "goal_run", "working", None),
        ("2", "task", "failed", "flaky"),
    ]


def test_cancelling_a_goal_and_its_run_in_either_order_is_one_row() -> None:
    for streams in (["@goal/7", "@task/1"], ["@task/1", "@goal/7"]):
        story = running_goal()
        for stream in streams:
            story.decided(stream, stream[1:5] + ".cancelled", {"reason": "not needed"})
        json = story.goal_json()
        assert (json["status"], json["summary"]) == ("cancelled", "not needed")
        assert texts_of(story.rows(), "goal-cancelled") == ["not needed"]
        assert [row["copies"] for row in json["events"]] == [1, 1, 1]
        assert story.task_json("1")["status"] == "cancelled"


def test_reopening_a_goal_and_requeueing_its_run_in_either_order_is_one_attempt() -> None:
    for decisions in (["goal.reopened", "task.requeued"], ["task.requeued", "goal.reopened"], ["goal.reopened"]):
        story = running_goal().result("run", "failed", "no")
        for kind in decisions:
            stream = "@goal/7" if kind.startswith("goal") else "@task/1"
            story.decided(stream, kind, {"run_task_id": "1"} if kind.startswith("goal") else {})
        assert (story.goal_json()["status"], story.goal_json()["attempt"]) == ("running", 2)
        assert story.task_json("1")["status"] == "queued"
        assert texts_of(story.rows(), "goal-started") == ["Started", "Started again, attempt 2"]


def test_a_goal_cancelled_before_its_start_can_be_reopened_into_a_run() -> None:
    story = Story().goal().decided("@goal/7", "goal.cancelled", {"reason": "later"})
    assert (story.goal_json()["status"], story.goal_json()["summary"]) == ("cancelled", "later")
    story.decided("@goal/7", "goal.reopened", {"run_task_id": "1"}).task("1", "7", kind="goal_run")
    json = story.goal_json()
    assert (json["status"], json["run_task_id"], json["summary"]) == ("running", "1", None)
    assert [row["kind"] for row in json["events"]] == ["goal-created", "goal-cancelled", "goal-started"]


def test_a_goal_is_cancelled_once() -> None:
    story = Story().goal().decided("@goal/7", "goal.cancelled", {"reason": "later"})
    story.decided("@goal/7", "goal.cancelled", {"reason": "never"})
    assert story.goal_json()["summary"] == "later"
    assert texts_of(story.rows(), "goal-cancelled") == ["later"]


def test_a_second_start_makes_no_second_run() -> None:
    story = running_goal().decided("@goal/7", "goal.started", {"run_task_id": "5"})
    assert story.goal_json()["run_task_id"] == "1"
    assert len(texts_of(story.rows(), "goal-started")) == 1


def test_a_remark_is_one_row_and_the_current_command() -> None:
    story = running_goal().result("run", "suspended", seq=1)
    story.command("run", 2, "cat << 'EOF' | ledgerd comment\nwaiting for a review\nEOF")
    story.comment("run", 3, "waiting for a review")
    json = story.goal_json()
    assert [row["text"] for row in json["events"] if row["kind"] == "comment"] == ["waiting for a review"]
    assert json["current_command"] == "waiting for a review"
    assert "EOF" not in str(json)


def test_the_same_remarks_under_a_second_session_are_shown_once() -> None:
    story = running_goal().comment("run", 1, "on it").comment("run", 2, "half way")
    once = story.goal_json()
    story.opened("again", "1", resumed_from="run").comment("again", 1, "on it").comment("again", 2, "half way")
    json = story.goal_json()
    assert [(row["text"], row["copies"]) for row in json["events"][2:]] == [("on it", 2), ("half way", 2)]
    assert json["digest"] == once["digest"]
    assert json["events"][2]["session_id"] == "run"


def test_the_same_words_in_another_task_or_slot_are_no_copies() -> None:
    story = running_goal().task("2", "7").opened("b", "2")
    story.comment("run", 1, "on it").comment("run", 2, "on it").comment("b", 1, "on it")
    assert [row.copies for row in story.rows() if row.kind == "comment"] == [(), (), ()]


def test_a_page_of_rows_leads_to_the_older_ones() -> None:
    story = running_goal()
    for seq in range(1, 8):
        story.comment("run", seq, f"remark {seq}")
    seen: list[str] = []
    page = story.goal_json(limit=4)
    while True:
        seen = [row["text"] for row in page["events"]] + seen
        if page["older"] is None:
            break
        page = story.goal_json(limit=4, before=page["older"])
    assert seen == ["Goal 7", "Started", *(f"remark {seq}" for seq in range(1, 8))]


def test_a_tasks_page_holds_its_own_rows_alone() -> None:
    story = running_goal().task("2", "7").opened("b", "2").comment("b", 1, "mine").comment("run", 1, "not mine")
    assert [row["text"] for row in story.task_json("2")["events"]] == ["Started", "mine"]
    assert [row["text"] for row in story.task_json("1")["events"]] == ["Started", "not mine"]


def test_skew_is_the_furthest_that_a_clock_ran_ahead() -> None:
    story = running_goal()
    assert story.goal_json()["integrity"]["skew"] == 0
    story.comment("run", 1, "early", at=story.events[-1].recorded_at + 4_500_000_000)
    story.comment("run", 2, "past", at=5)
    assert story.goal_json()["integrity"] == {
        "deliveries": 0,
        "duplicates": 0,
        "conflicts": 0,
        "missing": 0,
        "skew": 3.5,
    }


def test_views_are_ready_for_json() -> None:
    story = running_goal().comment("run", 1, "x").said("run", 2, "usage", {"input_tokens": 1}).result("run", "done")
    for view in (story.goal_json(), story.task_json("1"), story.session_json("run")):
        assert msgspec.json.decode(msgspec.json.encode(view)) == view


def test_what_a_root_does_not_hold_has_no_view() -> None:
    root = Story().task("12").root("task/12")
    assert goal_view(root, integrity=Integrity(), cursor="c") is None
    assert task_view(root, "13", integrity=Integrity(), cursor="c") is None
    assert session_view(root, "a", facts=StreamFacts(), cursor="c") is None
