"""What one run takes: a budget of candidates, of which each session has a share."""

from __future__ import annotations

from ledger.daemons.sweep.model import Candidate, Candidates

MAX_CANDIDATES, MAX_PER_SESSION = 50, 12


class Budget:
    """Of one run. A session is taken with its worst candidates, `max_per_session` at most, or not at all: what
    exceeds what is left waits for a later run, and smaller ones behind it may still be taken. The first that has
    candidates is always taken, so every session has its turn."""

    def __init__(self, max_candidates: int = MAX_CANDIDATES, max_per_session: int = MAX_PER_SESSION) -> None:
        self.left = max_candidates
        self._share = min(max_per_session, max_candidates)

    def take(self, session: Candidates) -> tuple[Candidate, ...] | None:
        """The candidates that are taken; None where the session is deferred."""
        worst = session.found[: self._share]
        if len(worst) > self.left:
            return None
        self.left -= len(worst)
        return worst
