"""What one run takes."""

from __future__ import annotations

from ledger.daemons.sweep.model import DONE, Candidate, Candidates, Found
from ledger.daemons.sweep.prefilter.selecting import Budget


def session(name: str, count: int) -> Candidates:
    found = Found("source", name, name, "claude-code")
    candidates = [Candidate("source", name, name, seq, "rule", DONE, seq, "why", "text") for seq in range(count)]
    return Candidates(found, name, None, tuple(candidates))


def taken(budget: Budget, *sessions: Candidates) -> list[str]:
    return [one.session.key for one in sessions if budget.take(one) is not None]


def test_a_session_that_exceeds_what_is_left_waits_whole_and_smaller_ones_go_on() -> None:
    assert taken(Budget(5, 4), session("a", 3), session("b", 3), session("c", 2), session("d", 1)) == ["a", "c"]


def test_three_sessions_of_three_take_three_runs_of_four() -> None:
    waiting = [session("a", 3), session("b", 3), session("c", 3)]
    runs = []
    while waiting:
        names = taken(Budget(4, 12), *waiting)
        waiting = [one for one in waiting if one.session.key not in names]
        runs.append(names)
    assert runs == [["a"], ["b"], ["c"]]


def test_of_a_session_with_many_the_worst_are_taken() -> None:
    found = Budget(50, 2).take(session("a", 9))
    assert found is not None
    assert [candidate.rank for candidate in found] == [0, 1]


def test_a_share_larger_than_the_budget_starves_nobody() -> None:
    assert taken(Budget(2, 12), session("a", 9)) == ["a"]
