from __future__ import annotations

from itertools import permutations

import pytest

from projections.narrative import Row
from tests.unit.projections.story import START_NS, Story, kinds_of, texts_of


def working_task() -> Story:
    return Story().task("12").opened("a", "12")


def remarks(story: Story) -> list[str]:
    return texts_of(story.rows("task/12"), "comment")


def digest(story: Story) -> str:
    digest = story.task_json("12")["digest"]
    assert isinstance(digest, str)
    return digest


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_rows_of_a_session_stand_in_seq_order_whatever_order_they_came_in(order: tuple[int, ...]) -> None:
    in_order, shuffled = working_task(), working_task()
    for seq in range(4):
        in_order.comment("a", seq, f"remark {seq}")
        shuffled.comment("a", order[seq], f"remark {order[seq]}")
    assert remarks(shuffled) == [f"remark {seq}" for seq in range(4)]
    assert digest(shuffled) == digest(in_order)


def test_a_late_row_stands_right_before_its_successor_and_moves_nothing() -> None:
    story = working_task().opened("b", "12")
    story.comment("a", 1, "a1").comment("b", 1, "b1").comment("a", 5, "a5").comment("b", 2, "b2")
    assert remarks(story) == ["a1", "b1", "a5", "b2"]
    story.comment("a", 3, "a3")
    assert remarks(story) == ["a1", "b1", "a3", "a5", "b2"]
    story.comment("a", 4, "a4").comment("a", 0, "a0").comment("b", 9, "b9")
    assert remarks(story) == ["a0", "a1", "b1", "a3", "a4", "a5", "b2", "b9"]


def test_a_remark_that_comes_after_the_end_stands_before_it() -> None:
    story = working_task().result("a", "done").comment("a", 5, "one more thing")
    assert kinds_of(story.rows("task/12")) == ["task-started", "comment", "task-done"]


def test_a_late_push_between_two_takes_back_what_was_told_too_soon() -> None:
    in_order, late = working_task(), working_task()
    in_order.result("a", "waiting", "q", seq=1).result("a", "working", seq=5).result("a", "working", seq=8)
    late.result("a", "waiting", "q", seq=1).result("a", "working", seq=8).result("a", "working", seq=5)
    for story in (in_order, late):
        assert [(row.kind, row.saying.seq) for row in story.rows("task/12")] == [
            ("task-started", -1),
            ("waiting", 1),
            ("resumed", 5),
        ]
    assert digest(in_order) == digest(late)


def test_a_late_park_turns_the_working_push_after_it_into_a_resumption() -> None:
    story = working_task().result("a", "working", seq=7).comment("a", 8, "going on")
    assert kinds_of(story.rows("task/12")) == ["task-started", "comment"]
    story.said("a", 6, "waiting", {"question": "which?"})
    assert kinds_of(story.rows("task/12")) == ["task-started", "waiting", "resumed", "comment"]


def test_a_copy_that_is_taken_back_leaves_the_row_to_the_others() -> None:
    story = working_task().opened("b", "12")
    for session in ("a", "b"):
        story.result(session, "waiting", "q", seq=1).result(session, "working", seq=8)
    assert [len(row.copies) for row in story.rows("task/12")] == [0, 1, 1]
    story.result("a", "working", seq=5)
    rows = {row.saying.seq: row for row in story.rows("task/12") if row.kind == "resumed"}
    assert {seq: (row.saying.session_id, row.copies) for seq, row in rows.items()} == {5: ("a", ()), 8: ("b", ())}
    story.result("b", "working", seq=5)
    assert [(row.saying.seq, len(row.copies)) for row in story.rows("task/12")] == [(-1, 0), (1, 1), (5, 1)]


def test_the_same_state_pushed_again_says_nothing_new() -> None:
    story = working_task().result("a", "suspended", "later", seq=1).result("a", "suspended", "later", seq=2)
    story.result("a", "suspended", "much later", seq=3)
    assert texts_of(story.rows("task/12"), "suspended") == ["later", "much later"]


def test_working_after_the_end_is_no_resumption() -> None:
    story = working_task().result("a", "waiting", seq=1).result("a", "done", seq=2).result("a", "working", seq=3)
    assert kinds_of(story.rows("task/12")) == ["task-started", "waiting", "task-done"]


def test_the_time_of_a_row_is_what_was_claimed_else_what_was_recorded() -> None:
    story = working_task().comment("a", 1, "claimed", at=START_NS).comment("a", 2, "not claimed")
    claimed, recorded = story.task_json("12")["events"][1:]
    assert claimed["at"] == "2023-11-14T22:13:20Z"
    assert recorded["at"] == "2023-11-14T22:13:24Z"


def test_the_earliest_time_claimed_for_a_row_holds_whichever_copy_came_first() -> None:
    stories = []
    for times in ((START_NS, None, START_NS + 1), (START_NS + 1, START_NS, None)):
        story = working_task().opened("b", "12").opened("c", "12")
        for session, at in zip("abc", times, strict=True):
            story.comment(session, 1, "on it", at=at)
        stories.append(story)
    assert digest(stories[0]) == digest(stories[1])
    assert stories[1].rows("task/12")[1].claimed_at == START_NS


def test_the_digest_tells_stories_apart() -> None:
    told = [
        working_task().comment("a", 1, "x"),
        working_task().comment("a", 1, "y"),
        working_task().comment("a", 2, "x"),
        working_task().comment("a", 1, "x", at=START_NS),
        working_task().said("a", 1, "comment", {"body": "x"}, actor="harness"),
        working_task().said("a", 1, "error", {"message": "x"}),
        working_task(),
    ]
    assert len({digest(story) for story in told}) == len(told)


def test_the_digest_knows_no_session_ids() -> None:
    one = working_task().comment("a", 1, "x").result("a", "done", "ok")
    other = Story().task("12").opened("other name", "12").comment("other name", 1, "x")
    assert digest(one) == digest(other.result("other name", "done", "ok"))


def test_errors_are_rows() -> None:
    story = working_task().said("a", 1, "error", {"message": "overloaded"})
    assert texts_of(story.rows("task/12"), "error") == ["overloaded"]


def test_many_rows_stay_in_order_when_they_come_from_the_end() -> None:
    story = working_task()
    for seq in range(1200, 0, -1):
        story.comment("a", seq, str(seq))
    rows: list[Row] = story.rows("task/12")
    assert [row.saying.seq for row in rows] == [-1, *range(1, 1201)]
    assert len(story.task_json("12")["events"]) == 200
