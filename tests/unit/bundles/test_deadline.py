from __future__ import annotations

import pytest

from bundles.rig.deadline import Deadline, OutOfTime


def test_a_step_may_take_no_more_than_what_is_left() -> None:
    deadline = Deadline(5)
    assert deadline.limit(1) == 1
    assert 0 < deadline.limit(60) <= 5


def test_a_deadline_that_is_over_says_so() -> None:
    with pytest.raises(OutOfTime, match="longer than 0 s"):
        Deadline(0).limit(1)
