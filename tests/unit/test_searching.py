from __future__ import annotations

from typing import Any

import pytest

from ledger.searching import batch_of
from tests.unit.projections.story import Story


def entries_of(story: Story) -> list[tuple[str, str]]:
    return [(entry.sort, entry.text) for entry in batch_of(story.events).entries]


def test_what_people_look_for_can_be_found() -> None:
    story = Story().goal("7", title="Port it", brief="Twice the speed").task("2", "7", title="A part", brief="")
    story.opened("a", "2").comment("a", 1, "It builds.")
    story.said("a", 2, "message", {"role": "user", "text": "Begin."})
    story.said("a", 3, "message", {"role": "assistant", "text": "I begin."})
    story.command("a", 4, "make test").said("a", 5, "error", {"message": "overloaded"})
    story.said("a", 6, "waiting", {"question": "May I?"}).result("a", "failed", "the harness collapsed")
    assert entries_of(story) == [
        ("prompt", "Port it\nTwice the speed"),
        ("prompt", "A part"),
        ("remark", "It builds."),
        ("prompt", "Begin."),
        ("command", "make test"),
        ("error", "overloaded"),
        ("question", "May I?"),
        ("summary", "the harness collapsed"),
    ]


def test_the_command_that_carries_a_remark_is_not_found() -> None:
    story = Story().task("1", title="").opened("a", "1").command("a", 1, "echo done | ledgerd comment")
    assert entries_of(story) == []


def test_a_long_command_is_found_by_all_of_it() -> None:
    command = "make\n" * 300 + "needle"
    story = Story().task("1", title="").opened("a", "1").command("a", 1, command)
    assert entries_of(story) == [("command", command)]


def test_the_run_of_a_goal_does_not_repeat_its_brief() -> None:
    assert entries_of(Story().started_goal()) == [("prompt", "Goal 7")]


def test_a_session_that_claims_a_decision_is_not_believed() -> None:
    story = Story().task("1", title="").opened("a", "1")
    story.said("a", 1, "goal.created", {"title": "mine", "project_id": "stolen"})
    batch = batch_of(story.events)
    assert (list(batch.entries), list(batch.projects)) == ([], [])


def test_sessions_and_projects_are_told_for_the_filters() -> None:
    story = Story().goal("7").task("2", project_id="9").opened("a", "2", agent="codex", host="mole")
    batch = batch_of(story.events)
    assert list(batch.sessions) == [("a", "codex", "mole")]
    assert list(batch.projects) == [("goal/7", "1"), ("task/2", "9")]


@pytest.mark.parametrize("payload", [{"body": ["x"]}, {"args": 7, "tool": {}}, {"text": 3, "role": "user"}, {}])
@pytest.mark.parametrize("kind", ["comment", "tool_call", "message", "result", "error", "waiting", "unheard.of"])
def test_no_payload_stops_the_indexing(kind: str, payload: dict[str, Any]) -> None:
    batch = batch_of(Story().task("1").opened("a", "1").said("a", 1, kind, payload).events)
    assert all(isinstance(entry.text, str) and entry.text for entry in batch.entries)
