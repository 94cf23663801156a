"""The runner is killed at each of its appends, before it or after it; the next tick must make it good."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from ledger.client.outbox import Added
from ledger.client.saddle import Session
from ledger.events.model import NewEvent
from projections.loop_state import TICK_COMPLETED, VERDICT
from tests.unit.daemons.loop.bench import Bench

APPENDS = 5  # of a tick with two roles: configured, started, two roles, verdict with completed


class Killed(BaseException):
    pass


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("nth", range(APPENDS))
def test_no_round_is_lost_and_none_counts_twice(
    bench: Bench, nth: int, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.task()
    bench.configure(description="another, so that it is recorded")
    real, left = Session.add, [nth]

    def add(self: Session, events: Iterable[NewEvent], **how: Any) -> Added:
        decisive = "expected_seq" in how
        left[0] -= decisive
        if decisive and left[0] == -1:
            if after:
                real(self, events, **how)
            raise Killed
        return real(self, events, **how)

    monkeypatch.setattr(Session, "add", add)
    with pytest.raises(Killed):
        bench.tick()
    monkeypatch.undo()
    summary = bench.tick()
    done = after and nth == APPENDS - 1  # the round was complete already, and this is the one after it
    assert summary.iter == (2 if done else 1)
    assert [event["tick"] for _, event in bench.events(TICK_COMPLETED)] == ([1, 2] if done else [1])
    assert len(bench.events(VERDICT)) == summary.iter
    assert bench.calls.count("verify") - summary.iter in (0, 1), "only the role in the middle is run again"
    assert bench.state()["iteration_count"] == summary.iter


def test_the_kills_above_are_at_every_append_that_there_is(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.task()
    bench.configure(description="another, so that it is recorded")
    real, count = Session.add, [0]

    def add(self: Session, events: Iterable[NewEvent], **how: Any) -> Added:
        count[0] += "expected_seq" in how
        return real(self, events, **how)

    monkeypatch.setattr(Session, "add", add)
    bench.tick()
    assert count == [APPENDS]
