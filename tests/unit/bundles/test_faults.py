"""Faults rearrange deliveries; what was delivered stays what it was."""

from __future__ import annotations

from collections import Counter
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundles import faults
from bundles.faults import VARIANTS, Fault
from bundles.plan import Decide, End, Event, Open, Push, Restart, Step, Steps

SESSIONS = ("s1", "s2")


def event(seq: int, kind: str = "comment", payload: str = "{}") -> Event:
    return Event(seq, kind, "model", msgspec.Raw(payload.encode()))


def terminal(seq: int) -> Event:
    return event(seq, "result", '{"state":"failed"}')


@st.composite
def plans(draw: st.DrawFn) -> Steps:
    """Two open sessions, then pushes with rising seqs, some of them terminal, ends and decisions between them."""
    steps: list[Step] = [Open("saddle", session, "1") for session in SESSIONS]
    next_seq = Counter[str]()
    for what in draw(st.lists(st.sampled_from(["push", "push", "push", "end", "decide"]), max_size=20)):
        session = draw(st.sampled_from(SESSIONS))
        if what == "decide":
            steps.append(Decide("owner", "tasks", "1", "requeue"))
        elif what == "end":
            steps.append(End("saddle", session, "failed", "text"))
        else:
            made = []
            for is_terminal in draw(st.lists(st.booleans(), min_size=1, max_size=5)):
                made.append((terminal if is_terminal else event)(next_seq[session]))
                next_seq[session] += 1
            steps.append(Push("saddle", session, tuple(made)))
    return tuple(steps)


def delivered(steps: Steps) -> Counter[tuple[str, int]]:
    return Counter((s.session_id, e.seq) for s in steps if isinstance(s, Push) for e in s.events)


def facts(steps: Steps) -> list[object]:
    """What must keep its order: openings, decisions, ends, terminal results."""
    found: list[object] = []
    for step in steps:
        if isinstance(step, Push):
            found += [(step.session_id, e.seq) for e in step.events if e.is_terminal]
        elif not isinstance(step, Restart):
            found.append(step)
    return found


@pytest.mark.parametrize("fault", [faults.split, faults.merge, faults.shuffle, faults.restart])
@given(steps=plans(), seed=st.integers(0, 2**32))
@settings(max_examples=60, print_blob=True)
def test_a_rearrangement_loses_and_adds_nothing_and_keeps_the_order_of_facts(
    fault: Fault, steps: Steps, seed: int
) -> None:
    after = fault(steps, Random(seed))
    assert delivered(after) == delivered(steps)
    assert facts(after) == facts(steps)


@given(steps=plans(), seed=st.integers(0, 2**32))
@settings(max_examples=60, print_blob=True)
def test_duplicates_come_after_their_originals(steps: Steps, seed: int) -> None:
    after = faults.duplicate(steps, Random(seed))
    seen: list[Step] = []
    for step in after:
        if step not in seen:
            seen.append(step)
    once: list[Step] = []
    for step in steps:
        if step not in once:
            once.append(step)
    assert seen == once
    assert len(after) >= len(steps)


@given(steps=plans(), seed=st.integers(0, 2**32))
@settings(max_examples=60, print_blob=True)
def test_churn_says_all_of_a_session_again_before_the_next_decision(steps: Steps, seed: int) -> None:
    after = faults.churn(steps, Random(seed))
    counts = delivered(after)
    assert all(counts[f"{session}~churned", seq] == 1 for session, seq in delivered(steps))
    said: Counter[str] = Counter()
    for step in after:
        if isinstance(step, Decide):
            assert all(said[session] == said[f"{session}~churned"] for session in SESSIONS)
        elif isinstance(step, Push):
            said[step.session_id] += len(step.events)


def test_splits_and_merges_and_shuffles_do_happen() -> None:
    steps: Steps = (
        Open("saddle", "s1", "1"),
        *(Push("saddle", "s1", tuple(event(seq) for seq in range(n, n + 10))) for n in range(0, 100, 10)),
    )
    random = Random(1)
    assert len(faults.split(steps, random)) > len(steps)
    assert len(faults.merge(steps, random)) < len(steps)
    assert list(delivered(faults.shuffle(steps, random))) != list(delivered(steps))
    assert any(isinstance(step, Restart) for step in faults.restart(steps, random))
    assert len(faults.duplicate(steps, random)) > len(steps)


def test_the_same_seed_makes_the_same_deliveries() -> None:
    steps: Steps = (Open("saddle", "s1", "1"), Push("saddle", "s1", tuple(map(event, range(50)))))
    for variant in VARIANTS:
        assert variant.apply(steps, Random(7)) == variant.apply(steps, Random(7))
