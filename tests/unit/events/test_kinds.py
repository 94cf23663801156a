"""The kinds that have a meaning, and which of them decide."""

from __future__ import annotations

import pytest

from ledger.events import kinds


@pytest.mark.parametrize("kind", [kinds.SESSION_OPENED, kinds.RESULT, kinds.WAITING])
def test_an_opening_and_a_state_push_of_a_session_decide(kind: str) -> None:
    assert kinds.is_decisive("s1", kind)


@pytest.mark.parametrize(
    "kind", [kinds.MESSAGE, kinds.TASK_REQUEUED, kinds.GOAL_CANCELLED, "goal.failed", "anything"]
)
def test_a_session_decides_nothing_by_the_kinds_of_others(kind: str) -> None:
    assert not kinds.is_decisive("s1", kind)


@pytest.mark.parametrize("stream", ["@goal/7", "@task/12", "@project/3"])
def test_all_that_the_ledger_writes_in_its_own_streams_decides(stream: str) -> None:
    assert kinds.is_own_stream(stream)
    assert kinds.is_decisive(stream, kinds.GOAL_CREATED)
    assert not kinds.is_own_stream(stream[1:])


def test_the_terminal_states_are_states() -> None:
    assert kinds.TERMINAL_STATES < kinds.STATES
    assert {"working", "waiting", "suspended"} == kinds.STATES - kinds.TERMINAL_STATES
