from __future__ import annotations

import pytest

from ledger.events.model import END_SEQ
from tests.unit.projections.story import START_NS, Story, kinds_of, texts_of


def working_task() -> Story:
    return Story().task("12").opened("a", "12")


def statuses(story: Story) -> list[str]:
    """The status of task 12 after each event."""
    found = []
    for count in range(1, len(story.events) + 1):
        part = Story()
        part.events = story.events[:count]
        task = part.catalog().work.tasks["12"]
        found.append(task.status)
    return found


def test_a_task_goes_from_queued_over_working_to_done() -> None:
    story = Story().task("12")
    story.decided("@task/12", "task.claimed", {"session_id": "a", "saddle": "anvil"})
    story.opened("a", "12").result("a", "suspended", seq=1).result("a", "working", seq=2).result("a", "done", "good")
    assert statuses(story) == ["queued", "working", "working", "suspended", "working", "done"]


def test_a_failure_stands_once_in_the_summary_and_makes_no_comment_and_no_block() -> None:
    story = working_task().result("a", "failed", "the tests do not pass")
    json = story.task_json("12")
    assert (json["status"], json["summary"], json["blocks"]) == ("failed", "the tests do not pass", [])
    assert [row["kind"] for row in json["events"]] == ["task-started", "task-failed"]


def test_the_same_failure_under_churned_sessions_is_one_row_with_copies() -> None:
    story = working_task().result("a", "failed", "no")
    once = story.task_json("12")
    for index in range(115):
        story.opened(f"churn {index}", "12").result(f"churn {index}", "failed", "no")
    again = story.task_json("12")
    assert (again["status"], again["summary"], again["digest"]) == ("failed", "no", once["digest"])
    assert [row["copies"] for row in again["events"] if row["kind"] == "task-failed"] == [116]
    assert len(again["events"]) == 2


def test_a_repeated_result_does_not_change_when_the_attempt_ended() -> None:
    story = working_task().result("a", "failed", "no", at=START_NS + 9)
    once = story.task_json("12")
    again = story.opened("b", "12").result("b", "failed", "no", at=START_NS).task_json("12")
    assert again["digest"] == once["digest"]
    assert again["events"][-1]["at"] == once["events"][-1]["at"]
    assert again["attempts"][0]["ended_at"] == once["attempts"][0]["ended_at"]


def test_the_same_result_in_two_slots_of_one_session_is_one_copy() -> None:
    story = working_task().result("a", "failed", "no", seq=3).result("a", "failed", "no", seq=END_SEQ)
    assert [row["copies"] for row in story.task_json("12")["events"]] == [1, 1]


@pytest.mark.parametrize(
    ("first", "second"), [("failed", "done"), ("done", "failed"), ("cancelled", "done"), ("done", "working")]
)
def test_whatever_follows_a_terminal_result_is_consumed(first: str, second: str) -> None:
    story = working_task().result("a", first, "first", seq=5)
    before = story.task_json("12")
    story.result("a", second, "second", seq=6).opened("b", "12").result("b", second, "second", seq=7)
    after = story.task_json("12")
    for name in ("status", "summary", "attempt", "digest"):
        assert after[name] == before[name]


def test_a_requeue_opens_the_next_attempt_and_both_failures_are_told() -> None:
    story = working_task().result("a", "failed", "first try").requeued("12")
    assert story.task_json("12")["status"] == "queued"
    assert story.task_json("12")["summary"] is None
    story.opened("b", "12").result("b", "failed", "second try")
    json = story.task_json("12")
    assert [(one["attempt"], one["status"], one["summary"], one["sessions"]) for one in json["attempts"]] == [
        (1, "failed", "first try", ["a"]),
        (2, "failed", "second try", ["b"]),
    ]
    rows = story.rows("task/12")
    assert kinds_of(rows) == ["task-started", "task-failed", "task-started", "task-failed"]
    assert texts_of(rows, "task-started") == ["Started", "Started again, attempt 2"]


def test_two_attempts_that_fail_with_the_same_words_are_two_rows() -> None:
    story = working_task().result("a", "failed", "no").requeued("12").opened("b", "12").result("b", "failed", "no")
    assert [row["copies"] for row in story.task_json("12")["events"] if row["kind"] == "task-failed"] == [1, 1]


def test_a_late_result_of_an_earlier_attempt_changes_nothing() -> None:
    story = working_task().opened("a2", "12").result("a", "failed", "no").requeued("12").opened("b", "12")
    before = story.task_json("12")
    story.result("a2", "done", "after all").result("a", "done", seq=9)
    after = story.task_json("12")
    assert (after["status"], after["digest"]) == ("working", before["digest"])


def test_a_session_opened_between_the_end_and_the_requeue_belongs_to_the_attempt_that_ended() -> None:
    story = working_task().result("a", "failed", "no").opened("late", "12").requeued("12").result("late", "done")
    json = story.task_json("12")
    assert json["status"] == "queued"
    assert json["attempts"][0]["sessions"] == ["a", "late"]


def test_a_requeue_of_an_open_attempt_changes_nothing() -> None:
    story = working_task().requeued("12")
    assert (story.task_json("12")["attempt"], story.task_json("12")["status"]) == (1, "working")


def test_a_child_session_decides_nothing_about_its_task() -> None:
    story = working_task().opened("child", "12", parent_session_id="a")
    story.result("child", "waiting", "which?", seq=1).result("child", "failed", "stuck")
    assert story.task_json("12")["status"] == "working"
    assert kinds_of(story.rows("task/12")) == ["task-started", "waiting"]
    assert story.session_json("child")["state"] == "failed"
    assert story.session_json("a")["children"] == ["child"]


def test_a_child_alone_still_makes_its_task_work() -> None:
    story = Story().task("12").opened("child", "12", parent_session_id="elsewhere")
    assert story.task_json("12")["status"] == "working"
    assert kinds_of(story.rows("task/12")) == []
    story.result("child", "done")
    assert story.task_json("12")["status"] == "working"


def test_the_state_with_the_highest_seq_counts_whatever_order_they_came_in() -> None:
    pushes = [(1, "waiting"), (4, "working"), (9, "suspended")]
    for order in (pushes, pushes[::-1], [pushes[2], pushes[0], pushes[1]]):
        story = working_task()
        for seq, state in order:
            story.result("a", state, seq=seq)
        assert story.task_json("12")["status"] == "suspended"


def test_a_waiting_event_is_as_good_as_a_waiting_result() -> None:
    story = working_task().said("a", 3, "waiting", {"question": "which one?"})
    assert story.task_json("12")["status"] == "waiting"
    assert texts_of(story.rows("task/12"), "waiting") == ["which one?"]


def test_the_session_opened_last_speaks_for_the_task() -> None:
    story = working_task().result("a", "waiting", seq=1).opened("b", "12", resumed_from="a")
    assert story.task_json("12")["status"] == "working"
    story.result("a", "suspended", seq=2)
    assert story.task_json("12")["status"] == "working"


def test_blocks_stand_beside_the_status() -> None:
    story = Story().task("12").decided("@task/12", "task.blocked", {"reason": "needs a key"})
    json = story.task_json("12")
    assert json["status"] == "queued"
    assert [(block["reason"], block["actor"]) for block in json["blocks"]] == [("needs a key", "owner")]
    assert list(json["actions"]) == ["cancel", "unblock"]
    story.decided("@task/12", "task.unblocked")
    assert story.task_json("12")["blocks"] == []
    assert list(story.task_json("12")["actions"]) == ["cancel", "block"]


def test_a_cancelled_task_says_why_once() -> None:
    story = working_task().decided("@task/12", "task.cancelled", {"reason": "not needed"})
    story.result("a", "cancelled", "not needed").result("a", "done", seq=8)
    json = story.task_json("12")
    assert (json["status"], json["summary"]) == ("cancelled", "not needed")
    assert texts_of(story.rows("task/12"), "task-cancelled") == ["not needed"]
    assert json["actions"] == {"requeue": {"method": "POST", "href": "/api/tasks/12/requeue"}}


@pytest.mark.parametrize("kind", ["task.cancelled", "task.requeued", "goal.failed", "session.opened", "task.blocked"])
def test_a_session_cannot_decide_by_pushing_the_ledgers_own_kinds(kind: str) -> None:
    story = working_task()
    before = (story.root("task/12"), story.catalog())
    story.said("a", 3, kind, {"reason": "mine now", "task_id": "99"})
    assert (story.root("task/12"), story.catalog()) == before


def test_an_id_that_is_no_word_is_quoted_in_links() -> None:
    story = Story().task("a b?c")
    assert story.task_json("a b?c")["actions"]["cancel"]["href"] == "/api/tasks/a%20b%3Fc/cancel"
