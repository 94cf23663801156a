"""What the page of a loop says in words."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.http.loop_rows import brake_rows, next_steps, overdue, round_rows, scores_plot, stands, why_it_stands
from projections.loop_reasons import Reason
from projections.loop_state import Loop
from tests.unit.http.loop_samples import AT_NS, at_work, begun, detail, folded, halted, round_of, stopped

NOW = AT_NS
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
            "done",
            "The task has passed. It waits for the next one.",
        ),
        (
            folded(TASK, *begun(1), ("tick.skipped", {"reason": "interrupted", "tick": 1})),
            "running",
            "Its last tick was skipped: The runner was asked to end in the middle of a round; the next tick goes on "
            "with it.",
        ),
        (
            folded(TASK, ("tick.skipped", {"reason": "gate_subprocess_failed"})),
            "suspended",
            "Its last tick was skipped: The gate's command gave no answer that can be read.",
        ),
        (
            folded(TASK, ("tick.skipped", {"reason": "a freeze until Monday"})),
            "suspended",
            "Its last tick was skipped: a freeze until Monday",
        ),
        (folded(TASK, ("tick.skipped", {"reason": "locked"}), *begun(1)), "running", "Round 1 is at work: verify."),
    ],
)
def test_a_loop_says_how_it_stands(loop: Loop, dot: str, words: str) -> None:
    assert stands(detail(loop)) == (dot, words)


def test_the_end_of_its_task_counts_for_more_than_how_it_stands() -> None:
    assert stands(detail(stopped(), task_status="cancelled")) == ("cancelled", "Cancelled with its task.")


def test_each_brake_says_how_far_it_is() -> None:
    told = {row["reason"]: (row["said"], row["share"]) for row in brake_rows(detail(at_work())["brakes"], 2.5)}
    assert told == {
        Reason.MAX_ITERATIONS: ("3 of 4 rounds", 0.75),
        Reason.BUDGET_EXHAUSTED: ("$ 2.50 of $ 10.00, as reported", 0.25),
        Reason.WALL_TIME_EXHAUSTED: ("26 min 28 s of 2 h", 0.22),
        Reason.SCORE_PLATEAU: ("0 of 5 scores without a gain", 0.0),
        Reason.NO_PROGRESS: ("0 of 2 rounds without a change", 0.0),
        Reason.PASSED: ("stops once the task has passed", 0.0),
    }


def test_a_brake_of_nothing_is_full_from_the_start() -> None:
    [brake] = [row for row in brake_rows(brakes(max_iterations=0), None) if row["reason"] == Reason.MAX_ITERATIONS]
    assert (brake["share"], brake["holds"]) == (1.0, True)


def test_a_budget_that_nobody_reports_against_says_so() -> None:
    [brake] = brake_rows(brakes(max_budget_usd=10, score_plateau_window=0), None)
    assert brake["said"] == "no cost reported; limit $ 10.00"


def brakes(**on: Any) -> Any:
    return detail(folded(config={"brakes": on}))["brakes"]


RUN = "ledgerd loop run --mode daemon --loop mend"
SET = 'ledgerd loop task mend "What is to be done"'


def skipped(reason: str) -> Loop:
    return folded(TASK, ("tick.skipped", {"reason": reason}))


@pytest.mark.parametrize(
    ("loop", "more", "sentence", "command"),
    [
        (folded(), {}, "Set a task in /srv/shop on mole:", SET),
        (
            folded(TASK, *round_of(1, 1.0, passed=True)),
            {},
            "Set the next task in /srv/shop on mole, or resume it to have this one done once more:",
            SET,
        ),
        (
            folded(TASK, *(event for tick in range(1, 5) for event in round_of(tick, tick / 10))),
            {},
            "Raise brakes.max_iterations in .ledgerd/loops/mend/loop.json in /srv/shop on mole.",
            None,
        ),
        (
            skipped("gate_subprocess_failed"),
            {},
            "Mend gate.command in .ledgerd/loops/mend/loop.json in /srv/shop on mole.",
            None,
        ),
        (stopped(), {}, "Once what halted it is settled, resume it: its next tick begins a new round.", None),
        (
            stopped(),
            {"requests": [{"action": "resume"}]},
            "A runner in daemon mode ends at a halt. If no other runs it, start one in /srv/shop on mole:",
            RUN,
        ),
    ],
)
def test_an_owner_is_told_what_to_do_next(loop: Loop, more: Any, sentence: str, command: str | None) -> None:
    assert next_steps(detail(loop, **more), NOW) == [(sentence, command)]


def test_a_name_in_a_command_is_one_word_for_a_shell() -> None:
    [(_, command)] = next_steps(detail(folded(), name="a; rm -rf ~ \x1b[1m"), NOW)
    assert command == """ledgerd loop task 'a; rm -rf ~ ' "What is to be done\""""


def test_nothing_is_to_be_done_about_a_loop_at_work_or_one_that_has_ended() -> None:
    assert next_steps(detail(at_work()), NOW) == []
    assert next_steps(detail(stopped(), task_status="cancelled"), NOW) == []


def test_a_runner_that_is_gone_is_missed_by_its_interval() -> None:
    resting, working = detail(folded(TASK)), detail(at_work())
    hour = 3600 * 10**9
    assert overdue(resting, NOW + hour // 10) is None
    assert overdue(resting, NOW + hour) == "Nothing came from its runner for 1 h, and a tick is due every 10 min."
    assert next_steps(resting, NOW + hour)[0][1] == RUN
    assert overdue(working, NOW + hour) is None  # an agent may be silent for long
    assert overdue(working, NOW + 3 * hour) is not None
    for idle in (detail(folded()), detail(stopped()), detail(folded(TASK), interval_s=None)):
        assert overdue(idle, NOW + 1000 * hour) is None


def test_a_loop_stands_by_what_only_a_person_can_change() -> None:
    assert why_it_stands(folded(TASK)) is None
    assert why_it_stands(skipped("locked")) is None
    for reason in ("budget_exhausted", "context_probe_failed"):
        stands_by = why_it_stands(skipped(reason))
        assert stands_by is not None
        assert stands_by[0] == reason
    raised = ("loop.configured", {"name": "mend", "config": {}, "digest": "e"})
    assert why_it_stands(folded(TASK, ("tick.skipped", {"reason": "budget_exhausted"}), raised)) is None


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
