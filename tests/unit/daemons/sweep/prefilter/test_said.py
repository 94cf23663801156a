"""What was said: mistakes, objections, alarms, blame."""

from __future__ import annotations

import pytest

from ledger.daemons.sweep.prefilter.filtering import Prefilter
from ledger.daemons.sweep.prefilter.typed import typed
from tests.unit.daemons.sweep.prefilter.told import Story


def test_a_plain_no_in_what_begins_a_session_or_is_long_is_none() -> None:
    assert Story().user("No tests fail, but the page is slow. Find out why.").rules() == []
    assert Story().agent("Done.").user("No. " + "Here is what the page should do, in full. " * 20).rules() == []


ASKED = (
    "Which database shall it be?",
    "All done. **Anything else?**",
    "Where does it run?\n1. on one host\n2. on many\n",
)


@pytest.mark.parametrize("question", ASKED)
def test_what_an_agent_had_asked_for_is_no_objection_and_what_speaks_of_its_work_is(question: str) -> None:
    def rules(answer: str) -> list[str]:
        return Story().runs("make").agent(question).user(answer).rules()

    for answer in ("PostgreSQL", "in src/utils", "a few hundred users", "the repo is at ~/app", "AWS, eu-central-1"):
        assert rules(answer) == [], answer
    for answer in ("you nuked my database", "everything is red", "I don't see any change", "we lost the data"):
        assert rules(answer) == ["answers-otherwise"], answer


def test_an_answer_in_unknown_words_counts_where_something_was_done_and_nothing_was_asked() -> None:
    answer = "our customers can't log in"
    assert Story().agent("Done.").user(answer).rules() == []
    assert Story().runs("make").agent("Done.").user(answer).rules() == ["answers-otherwise"]
    assert Story().runs("make").agent("Is it?\n\nI looked.\nIt is not.\nDone.").user("dark mode").rules() != []
    assert Story().runs("make").agent("Which?").user("blue").user("the output is rubbish").rules() != []


@pytest.mark.parametrize(
    "text",
    [
        "<system-reminder>You deleted the file, why did you do that?</system-reminder>",
        "<system-reminder>stop doing that",
        "<command-name>/x</command-name><command-args>why did you</command-args>",
        "<local-command-stdout>you broke it</local-command-stdout>",
        "<user-prompt-submit-hook>undo that!!</user-prompt-submit-hook>",
        "<task-notification>this is wrong</task-notification>",
        "<environment_context>you broke it</environment_context>",
        "This session is being continued from a previous conversation. The user said: why did you delete it?",
        "[Request interrupted by user for tool use]",
        "Stop hook feedback: you never ran the tests",
        "# AGENTS.md instructions\nYou should not touch the config",
        "Summarise this:\n```\nwhy did you delete it\n```",
        'Here is a log:\n> you broke it\n    why did you\nTraceback: \n  File "x.py", line 3, you broke it',
    ],
)
def test_what_a_harness_put_there_or_a_person_pasted_is_no_objection(text: str) -> None:
    assert Story().agent("Done.").user(text).rules() == []


def test_what_stands_beside_what_was_injected_still_counts() -> None:
    text = "<system-reminder>Be brief.</system-reminder>\nwhy did you delete it?\n```\nok\n```"
    candidate = Story().agent("Done.").user(text).only("objects")
    assert candidate.snippet == "why did you delete it?"


def test_an_order_that_a_model_gave_is_no_person_s() -> None:
    story = Story().agent("Done.")
    story.add("message", "model", role="user", text="Why did you delete it? Undo that!!")
    assert story.rules() == []


def test_tool_results_and_the_harness_speak_for_nobody() -> None:
    story = Story().calls("Read", {"file_path": "a"}, "why did you delete it? my mistake").harness("you broke it")
    assert story.rules() == []


def test_of_thoughts_only_damage_counts() -> None:
    assert Story().thinks("Wait, I was wrong, that is my mistake. Sorry.").rules() == []
    assert Story().thinks("I have accidentally deleted it.").rules() == ["admits-damage"]


def test_a_comment_in_the_ledger_is_what_was_said() -> None:
    assert Story().add("comment", "builder", body="I broke the build, my mistake.").rules() == ["admits-mistake"]


def test_a_call_that_a_person_refused_is_an_objection_with_its_reason() -> None:
    refused = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    story = Story().runs("make deploy", refused + " To tell you how to proceed, the user said: not on a Friday", 1)
    assert story.only("person-refuses").snippet == "Bash: make deploy — not on a Friday"
    twice = Story().calls("Bash", {"command": "a"}, refused, is_error=True)
    assert twice.calls("Glob", {"pattern": "b"}, refused, is_error=True).only("person-refuses").count == 2


def test_a_turn_shows_what_was_asked_and_what_came_after() -> None:
    story = Story().user("Clean up the branches.")
    for number in range(20):
        story.runs(f"git log -{number}", "…")
    story.agent("I deleted the wrong branch.").user("continue").agent("Restored.")
    turn = story.only("admits-damage").turn
    assert turn[0] == "user: Clean up the branches."
    assert "» agent: I deleted the wrong branch." in turn
    assert turn[-1] == "agent: Restored."
    assert len(turn) < 12


def test_an_alarm_of_the_configuration_is_heard_from_both() -> None:
    prefilter = Prefilter(extra_alarm=["(?i)code red"])
    assert Story().user("CODE RED").rules(prefilter) == ["extra-alarm"]
    assert Story().agent("code red").rules(prefilter) == ["extra-alarm"]


@pytest.mark.parametrize("opening", ["<system-reminder>", "<file ", "```\n", "<a>" * 3, "> x\n", "    "])
def test_taking_out_what_was_not_typed_is_quick_whatever_is_repeated(opening: str) -> None:
    assert len(typed(opening * 50_000)) <= len(opening) * 50_000


def test_nothing_is_left_of_a_text_that_is_never_closed() -> None:
    assert typed("hello <system-reminder> x") == "hello"
    assert typed("hello\n```\nx") == "hello"
