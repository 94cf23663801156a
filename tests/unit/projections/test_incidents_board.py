"""The board: all sweeps' incidents, whatever order their events are read in."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.events.model import Recorded
from projections import incidents_folding, sweep
from projections.fold import fold
from projections.incidents import Behind, Turn, joined
from projections.incidents_board import Board, Found, date_of, incident_id, week_of
from projections.incidents_folding import BOARD, EXCLUSIONS_KEPT, WEEKS_MAX
from tests.unit.projections.story import Story

LOST = {
    "register": "r",
    "fingerprint": "f1",
    "title": "Lost",
    "date": "2023-11-14",
    "severity": "HIGH",
    "category": "data-loss",
    "what": "a",
    "cost": "b",
    "lesson": "c",
    "sessions": [{"source": "claude", "key": "k1", "session_id": "s1", "turns": [{"seq": 4, "rule": "x"}]}],
}
AGAIN = {"register": "r", "fingerprint": "f1", "title": "Lost again", "date": "2023-11-20", "sessions": []}
LOOKED = {"status": "ok", "headline": "all looked at", "sessions_unreadable": 1, "sessions_clean": 5}

Fact = tuple[str, dict[str, Any]]


def run(story: Story, name: str, *facts: Fact, ended: bool = True, register: str = "r") -> Story:
    """A run of the sweep that says these facts."""
    story.task(f"t-{name}").opened(name, f"t-{name}", agent=sweep.AGENT)
    said = [("sweep.started", {"register": register, "title": f"of {name}"}), *facts]
    if ended:
        said += [("sweep.finished", LOOKED), ("result", {"state": "done"})]
    for seq, (kind, payload) in enumerate(said):
        story.said(name, seq, kind, payload, actor="sweep")
    return story


def board(events: Iterable[Recorded], state: Board | None = None) -> Board:
    return fold(BOARD, BOARD.initial if state is None else state, events)


def of(state: Board, mark: str = "f1") -> Found:
    return state.found[incident_id("r", mark)]


def test_an_incident_is_filed_once_and_what_comes_later_is_linked_to_it_and_counted() -> None:
    story = run(Story(), "one", ("incident.filed", LOST))
    run(story, "two", ("incident.recurred", AGAIN), ("incident.filed", LOST | {"title": "Another's words"}))
    found = of(board(story.events))
    assert found.head is not None
    assert (found.head.title, found.head.sweep) == ("Lost", "one")
    assert sorted(one.title for one in found.again.values()) == ["Another's words", "Lost again"]
    assert found.head.sessions == (Behind("claude", "k1", "s1", (Turn(4, "x", ""),)),)


def sessions(story: Story) -> list[list[Recorded]]:
    by_session: dict[str, list[Recorded]] = {}
    for event in story.events:
        by_session.setdefault(event.session_id, []).append(event)
    return list(by_session.values())


@given(order=st.permutations(range(4)), cut=st.integers(0, 6), back=st.integers(0, 6))
def test_sweeps_may_be_read_in_any_order_and_stretches_of_them_again(order: list[int], cut: int, back: int) -> None:
    story = run(Story(), "one", ("incident.filed", LOST), ("session.unreadable", {"source": "a", "key": "k"}))
    run(story, "two", ("incident.recurred", AGAIN), ("incident.filed", LOST | {"fingerprint": "f2"}))
    run(story, "three", ("incident.filed", LOST | {"title": "later"}), ("incident.recurred", AGAIN))
    run(story, "four", ("judge.verdict", {"plan": {"unmentioned": ["C01"]}}), register="other")
    told = [events for events in sessions(story) if not events[0].session_id.startswith("@")]
    inorder = board(chain(*told))
    mixed = board(())
    for number in order:
        opening, *events = told[number]  # an opening is read once: the reader's cursor goes on with it
        mixed = board([opening, *events[:cut]], mixed)
        mixed = board(events[max(0, cut - back) :], mixed)
    assert mixed == inorder
    assert not inorder.open


def test_a_run_is_read_until_its_result_and_all_before_it_have_arrived() -> None:
    story = run(Story(), "one", ("incident.filed", LOST), ("incident.recurred", AGAIN))
    opening, *rest = [event for event in story.events if event.session_id == "one"]
    late = rest.pop(2)
    state = board([opening, *rest])
    assert (state.open["one"].next_seq, state.open["one"].is_over) == (2, False)
    state = board([late, *rest[2:]], state)
    assert not state.open
    assert len(of(state).again) == 1


def test_only_what_a_sweep_says_counts() -> None:
    story = Story().task("t").opened("s", "t", agent="claude-code").said("s", 0, "incident.filed", LOST)
    assert board(story.events) == BOARD.initial
    nameless = run(Story(), "one", ("incident.filed", LOST | {"fingerprint": ""}), ("incident.recurred", {}))
    assert not board(nameless.events).found


def test_a_run_that_goes_on_hides_nothing_of_what_the_last_could_not_score() -> None:
    unreadable = ("session.unreadable", {"source": "claude", "key": "k", "why": "not JSON"})
    story = run(Story(), "one", unreadable)
    run(story, "two", ended=False)
    register = board(story.events).registers["r"]
    assert register.look is not None
    assert (register.look.session_id, dict(register.look.unscored)) == ("one", {"claude\tk": "not JSON"})
    run(story, "three", ("sweep.finished", {"status": "failed", "headline": "no judge"}), ended=False)
    register = board(story.events).registers["r"]
    assert register.last is not None
    assert register.look is not None
    assert (register.last.headline, register.look.session_id) == ("no judge", "one")


def test_the_runs_of_a_week_are_summed_and_each_counts_once() -> None:
    story = run(run(Story(), "one"), "two", ("sweep.finished", {"status": "failed", "sessions_unreadable": 2}))
    [(week, sums)] = board(story.events).registers["r"].weeks.items()
    assert week == "2023-11-13"
    assert (sums.runs, sums.failed, sums.looked_at, sums.unscored) == (2, 1, 5, 3)


def test_exclusions_name_their_candidates_and_why() -> None:
    plan = {
        "candidates": [
            {"id": "C01", "session": "claude s1", "rule": "rm", "snippet": "rm -rf x", "session_id": "s1", "seq": 7},
            {"id": "C02", "session": "claude s2", "rule": "kill", "snippet": "kill 1"},
        ],
        "excluded": [{"candidates": ["C01", "C09"], "reason": "a scratch folder", "duplicate_of": "E01"}, 3],
        "rejected": [{"title": "No cost", "why": "has no cost", "candidates": ["C02"]}],
        "unmentioned": ["C02"],
    }
    state = board(run(Story(), "one", ("judge.verdict", {"verdict": "v", "plan": plan})).events)
    excluded, rejected, unmentioned = (one for _, one in sorted(state.registers["r"].exclusions.items()))
    assert (excluded.how, excluded.reason, excluded.duplicate) == ("excluded", "a scratch folder", True)
    assert [(one.session_id, one.seq, one.rule) for one in excluded.candidates] == [("s1", 7, "rm")]
    assert (rejected.how, rejected.title, rejected.reason) == ("rejected", "No cost", "has no cost")
    assert (unmentioned.how, [one.seq for one in unmentioned.candidates]) == ("unmentioned", [None])


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incidents_folding, "OPEN_MAX", 3)
    excluded = [{"candidates": [], "reason": str(n)} for n in range(EXCLUSIONS_KEPT + 5)]
    story = Story()
    for number in range(5):
        run(story, f"run-{number}", ("judge.verdict", {"plan": {"excluded": excluded}}), ended=False)
    long = LOST | {
        "title": "x" * 9_000,
        "what": "y" * 9_000,
        "sessions": [{"source": "s", "key": str(n)} for n in range(999)],
    }
    run(story, "last", ("incident.filed", long))
    state = board(story.events)
    assert sorted(incidents_folding.bounded(state).open) == ["run-2", "run-3", "run-4"]
    assert len(state.registers["r"].exclusions) == EXCLUSIONS_KEPT
    head = of(state).head
    assert head is not None
    assert (len(head.title), len(head.what), len(head.sessions)) == (300, 4_000, 200)
    assert WEEKS_MAX > 52


def test_the_turns_of_one_session_are_told_together() -> None:
    one, two = Behind("a", "k", "s", (Turn(9, "x", ""),)), Behind("a", "k", "s", (Turn(3, "y", ""), Turn(9, "z", "")))
    assert joined([one, Behind("b", "k"), two]) == (
        Behind("a", "k", "s", (Turn(3, "y", ""), Turn(9, "x", ""))),
        Behind("b", "k"),
    )


@pytest.mark.parametrize(
    ("day", "known"), [("2026-03-01", "2026-03-01"), ("2026-W10-7", "2026-03-08"), ("soon", None), ("", None)]
)
def test_a_date_is_read_or_it_is_none(day: str, known: str | None) -> None:
    assert date_of(day) == known


def test_weeks_begin_on_mondays_and_the_first_of_all_does_not_fall_off() -> None:
    assert week_of("2026-03-01") == "2026-02-23"
    assert week_of("0001-01-03") == "0001-01-01"


def test_any_payload_is_folded_and_a_checkpoint_gives_the_same_state() -> None:
    kinds = ("sweep.started", "session.unreadable", "judge.verdict", "incident.filed", "incident.recurred", "result")
    odd: list[Any] = [
        [],
        {"plan": {"excluded": [3, {"candidates": 5}], "candidates": [{"id": {}}], "unmentioned": 7}},
        {
            "plan": 3,
            "sessions": [3, {"turns": [1, {"seq": True}, {"seq": 2**70}]}],
            "register": 5,
            "fingerprint": "f",
        },
        {"state": "done", "date": 7, "severity": ["HIGH"], "fingerprint": {"a": 1}},
    ]
    story = run(Story(), "one", ("incident.filed", LOST), ("incident.recurred", AGAIN), ended=False)
    for seq, (kind, payload) in enumerate(
        ((kind, payload) for kind in (*kinds, "sweep.finished") for payload in odd), 50
    ):
        story.said("one", seq, kind, payload)
    run(story, "two", ("incident.filed", LOST))
    state = board(story.events)
    assert BOARD.decode(BOARD.encode(state)) == state
    assert "one" in state.open
