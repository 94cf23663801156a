"""What the page of a loop says in words."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.http.loop_rows import brake_rows, round_rows, scores_plot, stands
from projections.loop_reasons import Reason
from projections.loop_state import Loop
from tests.unit.http.loop_samples import at_work, begun, detail, folded, halted, round_of, stopped

TASK = ("loop.task_set", {"task": "Mend it."})


@pytest.mark.parametrize(
    ("loop", "dot", "words"),
    [
        (folded(), "queued", "No task is set."),
        (folded(TASK), "running", "Goes on at its next tick."),
        (folded(TASK, *begun(1)), "running", "Round 1 is at work: verify."),
        (at_work(), "running", "Round 5 is at work."),
        (folded(TASK, halted()), "suspended", "Halted: A round touched files outside of blast_radius.file_scope."),
        (folded(TASK, halted("of a gate")), "suspended", "Halted: of a gate"),
        (
            folded(TASK, *round_of(1, 1.0, passed=True)),
            "suspended",
            "Held by a brake: The verifier has passed the current task; set the next one.",
        ),
    ],
)
def test_a_loop_says_how_it_stands(loop: Loop, dot: str, words: str) -> None:
    assert stands(detail(loop)) == (dot, words)


def test_the_end_of_its_task_counts_for_more_than_how_it_stands() -> None:
    assert stands(detail(stopped(), task_status="cancelled")) == ("cancelled", "Cancelled with its task.")


def test_each_brake_says_how_far_it_is() -> None:
    told = {row["reason"]: (row["said"], row["share"]) for row in brake_rows(detail(at_work())["brakes"])}
    assert told == {
        Reason.MAX_ITERATIONS: ("3 of 4 rounds", 0.75),
        Reason.BUDGET_EXHAUSTED: ("$ 2.50 of $ 10.00, as reported", 0.25),
        Reason.WALL_TIME_EXHAUSTED: ("26 min 28 s of 2 h", 0.22),
        Reason.SCORE_PLATEAU: ("0 of 5 scores without a gain", 0.0),
        Reason.NO_PROGRESS: ("0 of 2 rounds without a change", 0.0),
        Reason.PASSED: ("stops once the task has passed", 0.0),
    }


def test_a_brake_of_nothing_is_full_from_the_start() -> None:
    [brake] = [row for row in brake_rows(brakes(max_iterations=0)) if row["reason"] == Reason.MAX_ITERATIONS]
    assert (brake["share"], brake["holds"]) == (1.0, True)


def brakes(**on: Any) -> Any:
    return detail(folded(config={"brakes": on}))["brakes"]


def test_rounds_come_newest_first_with_what_became_of_each() -> None:
    rows = round_rows(detail(at_work())["rounds"])
    assert [(row["tick"], row["head"]) for row in rows] == [
        (5, "At work"),
        (4, "Given up"),
        (3, "Passed, score 1"),
        (2, "Not passed"),
        (1, "Not passed, score 0.25"),
    ]
    assert [row["task"] for row in rows] == ["Another task.", "", "", "", "Mend the test."]
    assert round_rows(detail(stopped())["rounds"])[0]["head"] == "Halted"


def test_the_plot_says_in_words_what_it_draws() -> None:
    found = scores_plot(detail(at_work())["scores"])
    assert found is not None
    note, drawing = found
    assert note == "The last is 1, the best 1. 1 of 3 rounds passed. 1 had no score."
    assert note in drawing
    assert "Round 1: 0.25, not passed" in drawing
    assert "Round 3: 1, passed" in drawing
    assert scores_plot(detail(folded(TASK, *round_of(1, None)))["scores"]) is None


def test_of_very_many_rounds_the_newest_are_drawn() -> None:
    events = [event for tick in range(1, 101) for event in round_of(tick, tick / 100)]
    found = scores_plot(detail(folded(TASK, *events))["scores"])
    assert found is not None
    assert found[0].endswith("The newest 60 are drawn.")
    assert found[1].count("<circle") == 60
