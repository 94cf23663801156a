from __future__ import annotations

import pytest

from projections.actions import goal_actions, links, task_actions
from tests.unit.projections.story import Story


@pytest.mark.parametrize(
    ("status", "actions"),
    [
        ("created", ("start", "cancel")),
        ("running", ("cancel",)),
        ("waiting", ("cancel",)),
        ("suspended", ("cancel",)),
        ("done", ("reopen",)),
        ("failed", ("reopen",)),
        ("cancelled", ("reopen",)),
    ],
)
def test_a_goal_offers_what_its_status_allows(status: str, actions: tuple[str, ...]) -> None:
    assert goal_actions(status) == actions


@pytest.mark.parametrize("status", ["queued", "working", "waiting", "suspended"])
def test_an_open_task_can_be_cancelled_and_blocked_or_unblocked(status: str) -> None:
    assert task_actions(status, blocked=False) == ("cancel", "block")
    assert task_actions(status, blocked=True) == ("cancel", "unblock")


@pytest.mark.parametrize("status", ["done", "failed", "cancelled"])
def test_a_task_that_has_ended_can_be_requeued(status: str) -> None:
    assert task_actions(status, blocked=False) == task_actions(status, blocked=True) == ("requeue",)


@pytest.mark.parametrize(
    ("status", "asked"), [("working", "halt"), ("waiting", "halt"), ("suspended", "resume"), ("queued", "halt")]
)
def test_a_loop_can_be_asked_to_halt_or_to_go_on(status: str, asked: str) -> None:
    assert task_actions(status, blocked=False, loops=True) == (asked, "cancel", "block")


def test_a_task_loops_while_the_attempt_is_a_loops() -> None:
    story = Story().task("1").opened("a", "1", agent="claude").opened("l", "1", agent="ledgerd-loop")
    assert "halt" in story.task_json("1")["actions"]
    story.result("l", "done").requeued("1").opened("b", "1", agent="claude")
    assert "halt" not in story.task_json("1")["actions"]


def test_links_say_how_a_decision_is_made() -> None:
    assert links("/api/goals/7", ("start",)) == {"start": {"method": "POST", "href": "/api/goals/7/start"}}
