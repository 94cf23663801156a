from __future__ import annotations

import json
import random
from typing import Any

import pytest

from ledger.events.content import content_digest
from ledger.events.model import OPENING_SEQ, Recorded
from projections.fold import fold
from projections.loop import LOOPS
from projections.loop_brakes import brakes_of, cost_usd, held_by
from projections.loop_reasons import Reason, sentence_of
from projections.loop_state import AGENT, ITS_AGENTS, Loop, Loops, Verdict
from projections.loop_views import log_lines, loop_view, state_item

START_NS = 1_800_000_000 * 10**9
S = 10**9


class Tale:
    """The events of one loop: `t` is its task, `s` its session, `a` that of its agents."""

    def __init__(self, **brakes: Any) -> None:
        self.events: list[Recorded] = []
        self._seqs = {"s": OPENING_SEQ, "a": OPENING_SEQ}
        self.say("session.opened", {"agent": AGENT, "task_id": "t"})
        self.say("session.opened", {"agent": ITS_AGENTS, "task_id": "t", "parent_session_id": "s"}, "a")
        self.say("loop.configured", {"name": "l", "config": {"brakes": brakes}, "digest": "d"})

    def say(self, kind: str, payload: dict[str, Any], session: str = "s") -> Tale:
        seq = self._seqs[session]
        self._seqs[session] += 1
        text, position = json.dumps(payload).encode(), len(self.events) + 1
        at = START_NS + position * S
        digest = content_digest(kind, "loop", text)
        self.events.append(Recorded(position, 0, session, seq, kind, "loop", at, at, "t", "task/t", text, digest))
        return self

    def round(self, tick: int, passed: bool = False, score: float | None = 0.5, **completed: Any) -> Tale:
        self.say("tick.started", {"tick": tick, "run": "r"})
        self.say("role.finished", {"tick": tick, "role": "implement", "exit_code": 0, "seconds": 10})
        self.say("role.finished", {"tick": tick, "role": "verify", "exit_code": 0, "seconds": 2.5})
        self.say("verdict", {"tick": tick, "pass": passed, "score": score, "reasons": ["r"]})
        return self.say("tick.completed", {"tick": tick, **completed})

    def halted(self, reason: str = "verifier_failed", **more: Any) -> Tale:
        return self.say("loop.halted", {"reason": reason, "halt_reason": reason, **more})

    @property
    def loop(self) -> Loop:
        return folded(self.events)


def folded(events: list[Recorded]) -> Loop:
    return fold(LOOPS, Loops(), events).loops["t"]


def test_a_round_is_told_by_its_roles_its_verdict_and_its_completion() -> None:
    loop = Tale().say("loop.task_set", {"task": "Do it."}).round(1, True, 0.9).loop
    assert (loop.name, loop.session_id, loop.current_task, loop.iteration_count) == ("l", "s", "Do it.", 1)
    assert loop.last_verdict == Verdict(True, 0.9, ("r",))
    assert loop.agent_seconds == 12.5
    assert (loop.open_round, loop.next_tick) == (None, 2)


def test_churned_repeated_and_shuffled_events_make_the_same_loop() -> None:
    tale = Tale(score_plateau_window=2).say("loop.task_set", {"task": "one"}).round(1).round(2, True, 0.7)
    tale.halted(tick=3).say("loop.resumed", {"request": 4}).say("loop.task_set", {"task": "two"})
    tale.say("tick.skipped", {"reason": "locked"}).round(4).say("usage", {"message_id": "m", "cost_usd": 1}, "a")
    want = loop_view(tale.loop)
    opening = tale.events[:2]
    rng = random.Random(7)
    for _ in range(20):
        rest = tale.events[2:] + rng.sample(tale.events[2:], 5)
        rng.shuffle(rest)
        assert loop_view(folded(opening + rest)) == want
    churned = [Recorded(**{name: getattr(e, name) for name in e.__struct_fields__} | {"session_id": "s2"})
               for e in tale.events if e.session_id == "s"]  # fmt: skip
    assert loop_view(folded(tale.events + churned)) == want


def test_what_the_agents_session_holds_counts_as_usage_alone() -> None:
    tale = Tale()
    for kind, payload in (
        ("verdict", {"tick": 1, "pass": True}),
        ("tick.completed", {"tick": 1}),
        ("loop.resumed", {}),
    ):
        tale.say(kind, payload, "a")
    tale.say("usage", {"message_id": "m", "cost_usd": 0.25}, "a").say("usage", {"cost_usd": 5})
    loop = tale.loop
    assert (loop.iteration_count, len(loop.resumes), cost_usd(loop)) == (0, 0, 0.25)


def test_the_agents_may_be_known_before_the_loop_is() -> None:
    tale = Tale().say("usage", {"cost_usd": 1}, "a")
    agents = [event for event in tale.events if event.session_id == "a"]
    others = [event for event in tale.events if event.session_id == "s"]
    assert loop_view(folded(agents + others)) == loop_view(tale.loop)


def test_a_round_is_open_until_it_is_complete_or_the_loop_is_halted() -> None:
    tale = Tale().say("tick.started", {"tick": 1, "run": "a"})
    assert tale.loop.open_round is not None
    tale.say("tick.skipped", {"reason": "interrupted", "tick": 1, "seconds": 3})
    tale.say("tick.started", {"tick": 1, "run": "b"})
    one = tale.loop.open_round
    assert one is not None
    assert (one.run, tale.loop.agent_seconds) == ("b", 3)
    assert tale.halted("human_intervention").say("loop.resumed", {}).loop.open_round is None
    assert tale.loop.next_tick == 2


def test_a_halt_lasts_until_a_resume_that_comes_after_it() -> None:
    tale = Tale().say("loop.resumed", {}).halted(tick=1, detail="why", files=["a"])
    halt = tale.loop.halt
    assert halt is not None
    assert (halt.reason, halt.detail, halt.files, halt.tick) == ("verifier_failed", "why", ("a",), 1)
    assert held_by(tale.loop) == "halted:verifier_failed"
    tale.say("loop.resumed", {})
    assert (tale.loop.halt, len(tale.loop.resumes)) == (None, 2)


@pytest.mark.parametrize(
    ("scores", "passed", "held"),
    [
        ([0.5, 0.5], False, None),
        ([0.5, 0.5, 0.5], False, "score_plateau"),
        ([0.5, 0.4, 0.5], False, "score_plateau"),
        ([0.5, 0.6, 0.5], False, None),
        ([0.1, 0.5, 0.6, 0.5], False, None),
        ([0.1, 0.6, 0.5, 0.5], False, "score_plateau"),
        ([0.5, 0.5, 0.5], True, None),
        ([0.5, None, 0.5, None, 0.5], False, "score_plateau"),
        ([None, None, None], False, None),
    ],
)
def test_a_plateau_is_a_full_window_without_a_gain_and_a_failing_verdict(
    scores: list[float | None], passed: bool, held: str | None
) -> None:
    tale = Tale(score_plateau_window=3)
    for tick, score in enumerate(scores, 1):
        tale.round(tick, passed and tick == len(scores), score)
    assert held_by(tale.loop) == held


@pytest.mark.parametrize("word", [("loop.resumed", {}), ("loop.task_set", {"task": "next"})])
def test_a_person_who_speaks_lets_a_loop_go_on_that_stood_still(word: tuple[str, dict[str, Any]]) -> None:
    tale = Tale(score_plateau_window=2, no_progress=True, stop_on_pass=True)
    tale.round(1, changed=False).round(2, changed=False)
    assert held_by(tale.loop) == "score_plateau"
    assert held_by(tale.say(*word).loop) is None
    assert tale.loop.score_history == [0.5, 0.5]
    assert held_by(tale.round(3, True, 1.0, changed=True).loop) == "passed"


@pytest.mark.parametrize(
    ("brakes", "held"),
    [
        ({"max_iterations": 2}, "max_iterations"),
        ({"max_iterations": 3}, None),
        ({"max_iterations": None}, None),
        ({"max_budget_usd": 1.5}, "budget_exhausted"),
        ({"max_budget_usd": 1.6}, None),
        ({"max_wall_s": 25}, "wall_time_exhausted"),
        ({"max_wall_s": 25.1}, None),
        ({"score_plateau_window": 2}, "score_plateau"),
        ({"score_plateau_window": 0}, None),
        ({"no_progress": True}, "no_progress"),
        ({"max_iterations": 2, "max_budget_usd": 1}, "max_iterations"),
    ],
)
def test_each_brake_holds_at_its_limit(brakes: dict[str, Any], held: str | None) -> None:
    tale = Tale(**brakes).round(1, changed=False).round(2, changed=False)
    tale.say("usage", {"message_id": "m", "cost_usd": 1}, "a").say("usage", {"message_id": "m", "cost_usd": 1.5}, "a")
    assert held_by(tale.loop) == held


def test_the_page_is_told_how_far_each_brake_is() -> None:
    tale = Tale(max_iterations=4, max_budget_usd=10, score_plateau_window=5).round(1).round(2, False, 0.4)
    assert [(b.reason, b.value, b.limit, b.holds) for b in brakes_of(tale.loop)] == [
        (Reason.MAX_ITERATIONS, 2, 4, False),
        (Reason.BUDGET_EXHAUSTED, 0, 10, False),
        (Reason.SCORE_PLATEAU, 2, 5, False),
    ]


def test_the_view_says_of_each_round_how_it_ended() -> None:
    tale = Tale().round(1, True, 1).round(2).say("tick.started", {"tick": 3, "run": "r"}).halted(tick=3)
    tale.say("loop.resumed", {}).say("tick.started", {"tick": 4, "run": "r"}).halted("human_intervention")
    tale.say("loop.resumed", {}).say("tick.started", {"tick": 5, "run": "r"})
    view = loop_view(tale.loop)
    assert [(one["tick"], one["outcome"], one["iteration"]) for one in view["rounds"]] == [
        (5, "open", None),
        (4, "abandoned", None),
        (3, "halted", None),
        (2, "failing", 2),
        (1, "passed", 1),
    ]
    assert [(one["tick"], one["score"]) for one in view["scores"]] == [(1, 1.0), (2, 0.5)]
    assert (view["status"], view["iteration_count"], view["resumed_count"]) == ("running", 2, 2)


def test_the_log_is_one_line_a_thing_and_skips_for_one_reason_are_one() -> None:
    tale = Tale().say("loop.task_set", {"task": "Do\nit."}).round(1, True, 0.9).round(3, False, None)
    for _ in range(3):
        tale.say("tick.skipped", {"reason": "locked"})
    tale.say("role.finished", {"tick": 4, "role": "orchestrate", "exit_code": 2}).halted()
    assert log_lines(tale.loop) == [
        "TASK Do it.",
        "TICK pass=True score=0.9 iter=1",
        "TICK pass=False score=None iter=2",
        "SKIP locked x3",
        "FAILED orchestrate exit=2",
        "HALT verifier_failed",
    ]


def test_no_skip_changes_the_state_file() -> None:
    tale = Tale().round(1)
    before = state_item(tale.loop)
    assert state_item(tale.say("tick.skipped", {"reason": "locked"}).loop) == before
    assert set(before) == {
        "schema_version", "name", "status", "halt_reason", "iteration_count", "resumed_count", "last_tick_at",
        "last_verdict", "score_history", "current_task", "worktree_branch", "worktree_path",
    }  # fmt: skip


ODD = {"tick": 1, "pass": 1, "exit_code": "x", "role": [], "reason": 5, "config": [], "files": 3, "inputs": 7}
ODD_TICKS: tuple[Any, ...] = ("1", True, -1, 10**30, None, [])


@pytest.mark.parametrize(
    "payload", [{}, ODD, *({"tick": tick, "task": None, "seconds": "long"} for tick in ODD_TICKS)]
)
def test_nothing_that_the_log_may_hold_stops_the_fold(payload: dict[str, Any]) -> None:
    tale = Tale()
    for kind in ("loop.configured", "loop.task_set", "loop.worktree", "loop.halted", "loop.resumed", "tick.started",
                 "tick.skipped", "role.finished", "verdict", "tick.completed"):  # fmt: skip
        tale.say(kind, payload)
    loop = tale.loop
    assert json.dumps(loop_view(loop))
    assert LOOPS.decode(LOOPS.encode(fold(LOOPS, Loops(), tale.events))) == fold(LOOPS, Loops(), tale.events)


def test_every_reason_has_a_sentence() -> None:
    assert all(reason.sentence.endswith(".") for reason in Reason)
    assert sentence_of("halted:scope_violation") == Reason.SCOPE_VIOLATION.sentence
    assert sentence_of("the build is red") == "the build is red"


def test_a_round_of_the_task_before_does_not_pass_the_new_one() -> None:
    tale = Tale(stop_on_pass=True).say("loop.task_set", {"task": "one"}).say("tick.started", {"tick": 1, "run": "r"})
    tale.say("loop.task_set", {"task": "two"}).say("verdict", {"tick": 1, "pass": True}).say(
        "tick.completed", {"tick": 1}
    )
    assert held_by(tale.loop) is None
    assert held_by(tale.round(2, True).loop) == "passed"
