from __future__ import annotations

import msgspec
import pytest

from projections.catalog import CATALOG
from projections.fold import fold
from projections.goal import ROOT, session_view
from projections.session import StreamFacts
from tests.unit.projections.story import Story


def full_story() -> Story:
    story = Story().started_goal().opened("a", "1").comment("a", 1, "on it").command("a", 2, "make")
    story.said("a", 3, "usage", {"message_id": "m1", "input_tokens": 3, "cost_usd": 0.5})
    story.said("a", 4, "waiting", {"question": "which?"}).result("a", "working", seq=5)
    story.task("2", "7").opened("b", "2", parent_session_id="a").said("b", 0, "error", {"message": "overloaded"})
    story.decided("@task/2", "task.blocked", {"reason": "no key"})
    return story.result("a", "failed", "out of luck").requeued("1")


def test_a_checkpoint_gives_back_an_equal_state() -> None:
    story = full_story()
    root, catalog = story.root(), story.catalog()
    assert ROOT.decode(ROOT.encode(root)) == root
    assert CATALOG.decode(CATALOG.encode(catalog)) == catalog


def test_folding_on_from_a_checkpoint_gives_what_folding_from_the_start_gives() -> None:
    events = full_story().events
    whole = fold(ROOT, ROOT.initial, events)
    for cut in range(len(events) + 1):
        half = ROOT.decode(ROOT.encode(fold(ROOT, ROOT.initial, events[:cut])))
        assert fold(ROOT, half, events[cut:]) == whole


def test_what_is_no_checkpoint_is_refused() -> None:
    with pytest.raises(msgspec.MsgspecError):
        ROOT.decode(b"\x93nonsense")


def test_a_fold_leaves_the_state_before_it_as_it_was() -> None:
    story = full_story()
    half = fold(ROOT, ROOT.initial, story.events[:6])
    kept = ROOT.encode(half)
    fold(ROOT, half, story.events[6:])
    assert ROOT.decode(kept) == half


def test_events_without_a_meaning_leave_the_very_same_state() -> None:
    story = Story().started_goal().opened("a", "1")
    before = story.root()
    story.said("a", 1, "message", {"role": "thinking", "text": "hm"}).said("a", 2, "tool_result", {"stdout": "ok"})
    story.said("a", 3, "never.heard.of", {"x": 1})
    assert fold(ROOT, before, story.events[-3:]) is before
    assert fold(CATALOG, CATALOG.initial, story.events[-3:]) is CATALOG.initial


@pytest.mark.parametrize(
    "kind", ["comment", "tool_call", "usage", "error", "waiting", "result", "session.opened", "goal.failed"]
)
@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"body": 5, "args": [1, {"a": None}], "input_tokens": -1, "cost_usd": "free", "message": [], "state": {}},
        {"body": None, "args": "{not json", "message_id": 9, "input_tokens": 10**40, "cost_usd": 1e300},
        {"tool": {"x": 1}, "args": '{"a": [[[]]]}', "question": ["why"], "state": "sleeping", "summary": 3},
    ],
)
def test_no_payload_stops_a_fold(kind: str, payload: dict[str, object]) -> None:
    story = Story().started_goal().opened("a", "1").said("a", 1, kind, payload)
    story.goal_json()
    story.catalog()


@pytest.mark.parametrize("kind", ["comment", "result", "tool_call", "usage", "waiting"])
def test_an_event_of_a_session_that_was_never_opened_is_tolerated(kind: str) -> None:
    story = Story().started_goal().opened("a", "1").said("a", 1, kind, {"state": "failed", "body": "x"})
    del story.events[3]
    assert story.goal_json()["status"] == "running"


def test_a_session_opens_in_its_own_slot_alone() -> None:
    story = (
        Story().started_goal().opened("a", "1").said("a", 1, "session.opened", {"task_id": "1", "saddle": "forge"})
    )
    del story.events[3]
    assert session_view(story.root(), "a", facts=StreamFacts(), cursor="c") is None
    assert story.catalog().work.tasks["1"].status == "queued"
