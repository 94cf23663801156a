from __future__ import annotations

from ledger.http.page_rows import DEPTH_MAX, narrative_rows, session_tree
from tests.unit.http.page_samples import row


def tree(*parents: tuple[str, str | None]) -> list[tuple[int, str]]:
    sessions = [{"session_id": name, "parent_session_id": parent} for name, parent in parents]
    return [(depth, session["session_id"]) for depth, session in session_tree(sessions)]


def test_each_child_stands_below_its_parent() -> None:
    assert tree(("a", None), ("b", None), ("a1", "a"), ("b1", "b"), ("a11", "a1"), ("a2", "a")) == [
        (0, "a"),
        (1, "a1"),
        (2, "a11"),
        (1, "a2"),
        (0, "b"),
        (1, "b1"),
    ]


def test_a_child_of_somebody_else_stands_for_itself() -> None:
    assert tree(("a", "elsewhere"), ("b", None)) == [(0, "a"), (0, "b")]


def test_sessions_that_are_each_others_parents_are_shown_all_the_same() -> None:
    assert sorted(name for _, name in tree(("a", "b"), ("b", "a"), ("c", None))) == ["a", "b", "c"]


def test_a_long_line_of_descent_is_drawn_at_a_bounded_depth() -> None:
    line = [("s0", None), *((f"s{number}", f"s{number - 1}") for number in range(1, 50))]
    assert max(depth for depth, _ in tree(*line)) == DEPTH_MAX


def test_an_attempt_that_another_followed_is_told_by_its_number() -> None:
    rows = [row("goal-failed", "no", task_id="12", attempt=1, tried_again=True), row("goal-failed", "no")]
    assert [shown.head for shown in narrative_rows(rows, {})] == ["Attempt 1 failed.", "The goal failed."]
    (further,) = narrative_rows([row("task-failed", "no", task_id="13", attempt=2, tried_again=True)], {"13": "Fuzz"})
    assert further.head == "Fuzz: attempt 2 failed."


def test_every_kind_of_row_is_told_in_words() -> None:
    kinds = "goal-started task-started waiting suspended resumed error task-done goal-failed goal-cancelled"
    told = [shown.head for shown in narrative_rows([row(kind, "") for kind in kinds.split()], {})]
    assert told == [
        "Started",
        "Started",
        "Waits for you",
        "Suspended",
        "Went on",
        "An error",
        "The task is done.",
        "The goal failed.",
        "The goal was cancelled.",
    ]


def test_a_further_attempt_says_so() -> None:
    (shown,) = narrative_rows([row("goal-started", "Started again, attempt 2")], {})
    assert shown.head == "Started again, attempt 2"


def test_only_remarks_and_endings_carry_a_tone() -> None:
    rows = [row(kind, "") for kind in ("comment", "task-failed", "goal-done", "waiting", "goal-created")]
    assert [shown.tone for shown in narrative_rows(rows, {})] == ["remark", "failed", "done", "waiting", ""]
