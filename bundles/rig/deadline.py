"""A time limit that everything in one run shares."""

from __future__ import annotations

import time


class OutOfTime(Exception):
    """The run's time is up: what it would have shown is not known."""


class Deadline:
    """`seconds` from now on."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ends = time.monotonic() + seconds

    def limit(self, seconds: float) -> float:
        """The seconds that a step may take: at most `seconds`, and no more than is left. Raises OutOfTime."""
        left = self._ends - time.monotonic()
        if left <= 0:
            raise OutOfTime(f"the run took longer than {self._seconds:.0f} s")
        return min(seconds, left)
