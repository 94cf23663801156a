from __future__ import annotations

import itertools

import pytest

from projections.doing import TEXT_CHARS_MAX, result_failed
from tests.unit.projections.story import Story


def working() -> Story:
    return Story().started_goal().opened("a", "1")


def message(story: Story, seq: int, role: str, text: str, session: str = "a") -> Story:
    return story.said(session, seq, "message", {"role": role, "text": text})


def doing(story: Story) -> dict[str, object]:
    [session] = [one for one in story.task_json("1")["sessions"] if one["session_id"] == "a"]
    names = ("messages", "tool_calls", "failed_calls", "first_prompt", "last_words")
    return {name: session[name] for name in names}


def test_a_session_that_did_nothing_has_nothing_to_say() -> None:
    assert doing(working()) == {
        "messages": 0,
        "tool_calls": 0,
        "failed_calls": 0,
        "first_prompt": None,
        "last_words": None,
    }


def test_the_first_prompt_and_the_last_words_go_by_seq_in_whatever_order_they_come() -> None:
    said = [(1, "user", "Port it."), (2, "assistant", "I begin."), (3, "user", "Faster."), (4, "assistant", "Done.")]
    for order in itertools.permutations(said):
        story = working()
        for seq, role, text in order:
            message(story, seq, role, text)
        assert doing(story) == {
            "messages": 4,
            "tool_calls": 0,
            "failed_calls": 0,
            "first_prompt": "Port it.",
            "last_words": "Done.",
        }


def test_thoughts_and_blank_texts_are_no_words() -> None:
    story = message(message(message(working(), 1, "assistant", "Yes."), 2, "thinking", "hm"), 3, "assistant", " \n")
    assert (doing(story)["last_words"], doing(story)["messages"]) == ("Yes.", 2)


def test_long_words_are_bounded() -> None:
    words = doing(message(working(), 1, "assistant", "x" * 10_000))["last_words"]
    assert words == "x" * TEXT_CHARS_MAX


def test_calls_and_their_failures_are_counted_in_their_own_session() -> None:
    story = working().opened("b", "1").command("a", 1, "make").command("b", 1, "make")
    for seq, payload in enumerate(({"exit_code": 2}, {"exit_code": 0}, {"is_error": True}, {"output": "ok"}), 2):
        story.said("a", seq, "tool_result", payload)
    assert (doing(story)["tool_calls"], doing(story)["failed_calls"]) == (1, 2)


@pytest.mark.parametrize(("exit_code", "failed"), [(None, False), (0, False), ("0", False), (1, True), ("9", True)])
def test_an_exit_code_other_than_nothing_is_a_failure(exit_code: object, failed: bool) -> None:
    assert result_failed(exit_code, None) is failed


def test_the_session_itself_says_the_same() -> None:
    story = message(working(), 1, "user", "Port it.")
    assert story.session_json("a")["first_prompt"] == "Port it."
    assert story.session_json("a")["messages"] == 1
