"""What an owner may ask of a loop."""

from __future__ import annotations

import pytest

from projections.loop_actions import loop_actions
from projections.loop_brakes import CLEARED_BY_A_RESUME, held_by
from projections.loop_reasons import Reason
from projections.loop_state import Loop
from tests.unit.projections.story import Story
from tests.unit.projections.test_loop import Tale

HOLDING = {
    Reason.SCORE_PLATEAU: Tale(score_plateau_window=2).round(1).round(2).loop,
    Reason.NO_PROGRESS: Tale(no_progress=True).round(1, changed=False).round(2, changed=False).loop,
    Reason.PASSED: Tale(stop_on_pass=True).round(1, True).loop,
    Reason.MAX_ITERATIONS: Tale(max_iterations=1).round(1).loop,
}


def offered(loop: Loop, asked: str | None = None, state: str = "working") -> tuple[str, ...]:
    story = Story().task("t").opened("s", "t", agent="ledgerd-loop").result("s", state)
    return loop_actions(story.catalog().work.tasks["t"], loop, asked)


def test_a_loop_at_work_may_be_halted_and_one_that_is_halted_resumed() -> None:
    assert offered(Tale().loop) == ("halt",)
    assert offered(Tale().halted().loop, state="suspended") == ("resume",)
    assert offered(Tale().loop, state="done") == ()


@pytest.mark.parametrize("reason", HOLDING)
def test_a_loop_that_a_brake_holds_may_be_resumed_where_that_lets_it_go_on(reason: Reason) -> None:
    assert held_by(HOLDING[reason]) == reason
    assert offered(HOLDING[reason]) == (("resume", "halt") if reason in CLEARED_BY_A_RESUME else ("halt",))


def test_what_was_asked_and_not_taken_yet_may_be_taken_back() -> None:
    assert offered(Tale().loop, "halt") == ("resume",)
    assert offered(Tale().halted().loop, "resume", "suspended") == ("halt",)
    assert offered(Tale().loop, "halt", "done") == ()
