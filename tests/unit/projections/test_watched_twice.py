"""One run of an agent, told by two: a fact that both tell is shown once, and the state is what either said last."""

from __future__ import annotations

import pytest

from projections import narrative
from tests.unit.projections.story import SECOND_NS, START_NS, Story


def watched() -> Story:
    """A hook's session and a watcher's, of one run."""
    story = Story().task("12").opened("run.hook", "12", same_run_as="run")
    return story.opened("run", "12")


def at(second: int) -> int:
    return START_NS + second * SECOND_NS


QUESTION = {"question": "Which one?", "call_id": "toolu_1"}


def test_a_question_that_both_tell_under_seqs_of_their_own_is_one_row() -> None:
    story = watched().said("run.hook", 900, "waiting", QUESTION).said("run", 3001, "waiting", QUESTION)
    rows = [row for row in story.task_json("12")["events"] if row["kind"] == "waiting"]
    assert [(row["text"], row["session_id"], row["copies"]) for row in rows] == [("Which one?", "run.hook", 2)]


def test_the_story_is_the_same_whoever_tells_it_first() -> None:
    one = (
        watched()
        .said("run.hook", 900, "waiting", QUESTION, at=at(5))
        .said("run", 3001, "waiting", QUESTION, at=at(4))
    )
    other = (
        watched()
        .said("run", 3001, "waiting", QUESTION, at=at(4))
        .said("run.hook", 900, "waiting", QUESTION, at=at(5))
    )
    assert one.task_json("12")["digest"] == other.task_json("12")["digest"]


def test_facts_with_other_names_are_rows_of_their_own() -> None:
    story = watched().said("run.hook", 900, "error", {"message": "Overloaded", "message_id": "m1"})
    story.said("run", 3001, "error", {"message": "Overloaded", "message_id": "m2"})
    assert [row["copies"] for row in story.task_json("12")["events"] if row["kind"] == "error"] == [1, 1]


def test_one_session_that_tells_a_fact_twice_is_one_copy() -> None:
    story = watched()
    for seq in (5, 9):
        story.said("run", seq, "error", {"message": "Overloaded", "call_id": "c"})
    assert [row["copies"] for row in story.task_json("12")["events"] if row["kind"] == "error"] == [1]


def test_a_row_that_one_of_two_takes_back_stays_as_the_others() -> None:
    """A late push shows that a session waited before already, so its second push says nothing new."""
    story = watched().said("run", 4, "waiting", QUESTION).said("run.hook", 900, "waiting", QUESTION)
    story.said("run", 2, "waiting", {"question": "Which one?"})
    rows = [row for row in narrative.all_rows(story.root("task/12").narrative) if row.kind == "waiting"]
    assert sorted((row.saying.session_id, row.saying.seq, row.told_by) for row in rows) == [
        ("run", 2, 1),
        ("run.hook", 900, 1),
    ]


def test_a_call_that_both_tell_is_no_news_the_second_time() -> None:
    def call(command: str, call_id: str) -> dict[str, object]:
        return {"tool": "Bash", "args": {"command": command}, "call_id": call_id}

    story = watched().said("run.hook", 900, "tool_call", call("make", "c1"))
    story.said("run.hook", 910, "tool_call", call("make test", "c2"))
    story.said("run", 3001, "tool_call", call("make", "c1"))
    assert story.task_json("12")["current_command"] == "make test"
    story.said("run", 4001, "tool_call", call("make dist", "c3"))
    assert story.task_json("12")["current_command"] == "make dist"


@pytest.mark.parametrize("hook_first", [True, False])
def test_the_state_of_a_run_is_what_was_said_last_by_either(hook_first: bool) -> None:
    story = Story().task("12")
    for session_id in ("run.hook", "run") if hook_first else ("run", "run.hook"):
        story.opened(session_id, "12", **({"same_run_as": "run"} if session_id == "run.hook" else {}))
    assert story.task_json("12")["status"] == "working"
    story.said("run.hook", 900, "waiting", {"question": "Well?"}, at=at(50))
    story.said("run", 3001, "result", {"state": "working"}, at=at(40))
    assert story.task_json("12")["status"] == "waiting"
    story.said("run", 4001, "result", {"state": "working"}, at=at(60))
    assert story.task_json("12")["status"] == "working"


def test_another_run_on_the_same_task_takes_over_the_state() -> None:
    story = watched().said("run.hook", 900, "waiting", {"question": "Well?"}, at=at(50)).opened("next", "12")
    assert story.task_json("12")["status"] == "working"


def test_a_session_says_which_run_it_reports() -> None:
    assert watched().session_json("run.hook")["same_run_as"] == "run"
    assert watched().session_json("run")["same_run_as"] is None
