"""What each agent's hooks become."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.hooks import claude_code, codex, gemini
from ledger.hooks.saying import QUESTION_CHARS_MAX
from ledger.transcripts.claude_rows import said_by
from tests.unit.hooks.hooked import S, bash, claude

WORKING = ("result", "harness", {"state": "working"})


def asked(name: str, **fields: Any) -> dict[str, Any]:
    given = {"questions": [{"question": "Which one?"}]}
    return claude(name, tool_name="AskUserQuestion", tool_input=given, tool_use_id="toolu_2", **fields)


def test_a_prompt_of_claude_is_said_and_is_work() -> None:
    told = claude_code.told_by(claude("UserPromptSubmit", prompt="Fix it"))
    assert told.said == [("message", "user", {"role": "user", "text": "Fix it"}), WORKING]
    assert claude_code.place(claude("UserPromptSubmit", prompt="Fix it")).prompt == "Fix it"


def test_a_call_of_claude_is_told_in_the_words_of_its_transcript() -> None:
    blocks = [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "make test"}}]
    row = {"type": "assistant", "message": {"content": blocks}}
    told = claude_code.told_by(bash("PreToolUse"))
    assert told.said == list(said_by(row, lambda type_: None))
    assert told.state == WORKING


def test_a_question_of_claude_waits_until_it_is_answered() -> None:
    question = claude_code.told_by(asked("PreToolUse"))
    assert question.said[-1] == ("waiting", "model", {"question": "Which one?", "call_id": "toolu_2"})
    assert question.state is None
    answer = claude_code.told_by(asked("PostToolUse", tool_response={"answers": {"Which one?": "this"}}))
    assert answer.said[-1] == ("result", "harness", {"state": "working", "call_id": "toolu_2"})
    assert answer.state is None


@pytest.mark.parametrize(
    ("response", "payload"),
    [
        ({"stdout": "ok", "stderr": "warned"}, {"output": "ok\nwarned", "exit_code": 0}),
        ([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], {"output": "one\ntwo"}),
        ({"filePath": "/a", "success": True}, {"output": '{"filePath": "/a", "success": true}'}),
        (None, {"output": ""}),
    ],
)
def test_the_response_of_a_tool_of_claude_is_its_output(response: Any, payload: dict[str, Any]) -> None:
    told = claude_code.told_by(bash("PostToolUse", tool_response=response))
    assert told.said == [("tool_result", "harness", {"call_id": "toolu_1", **payload})]


def test_a_tool_of_claude_that_failed_says_so() -> None:
    told = claude_code.told_by(bash("PostToolUseFailure", error="Exit code 2\nno rule"))
    payload = {"call_id": "toolu_1", "output": "Exit code 2\nno rule", "is_error": True, "exit_code": 2}
    assert told.said == [("tool_result", "harness", payload)]


@pytest.mark.parametrize("type_", [{"notification_type": "permission_prompt"}, {}])
def test_a_notification_that_waits_for_a_person_waits_if_that_is_news(type_: dict[str, str]) -> None:
    told = claude_code.told_by(claude("Notification", message="Claude needs your permission to use Bash", **type_))
    assert told == ([], ("waiting", "harness", {"question": "Claude needs your permission to use Bash"}))


def test_a_notification_that_waits_for_nobody_is_told_plainly() -> None:
    hook = claude("Notification", message="Signed in", notification_type="auth_success")
    payload = {"message": "Signed in", "notification_type": "auth_success"}
    assert claude_code.told_by(hook) == ([("claude-code.Notification", "harness", payload)], None)


def test_when_claude_stops_it_is_the_person_s_turn() -> None:
    told = claude_code.told_by(claude("Stop", last_assistant_message="Done. Shall I push?"))
    assert told.said == [("waiting", "model", {"question": "Done. Shall I push?"})]
    [long] = claude_code.told_by(claude("Stop", last_assistant_message="x" * 10**6)).said
    assert len(long[2]["question"]) == QUESTION_CHARS_MAX


def test_a_turn_of_claude_that_failed_is_an_error_and_waits() -> None:
    told = claude_code.told_by(
        claude("StopFailure", error="rate_limit", last_assistant_message="API Error: Rate limit")
    )
    assert told.said == [
        ("error", "harness", {"message": "API Error: Rate limit", "error": "rate_limit"}),
        ("waiting", "harness", {"question": "API Error: Rate limit"}),
    ]


def test_a_session_that_ended_may_be_resumed() -> None:
    told = claude_code.told_by(claude("SessionEnd", reason="logout"))
    assert told.said == [("result", "harness", {"state": "suspended", "summary": "The session ended (logout)"})]


@pytest.mark.parametrize("agent_id", ["def456", "agent-def456"])
def test_a_subagent_of_claude_is_called_as_its_transcript_is(agent_id: str) -> None:
    place = claude_code.place(bash("PreToolUse", agent_id=agent_id))
    assert place == (f"{S}.agent-def456", S, None)
    ended = claude_code.told_by(claude("SubagentStop", agent_id=agent_id, last_assistant_message="Found 3"))
    assert ended.said == [("result", "harness", {"state": "done", "summary": "Found 3"})]


def test_hooks_that_are_not_known_are_kept() -> None:
    told = claude_code.told_by(claude("BrandNew", detail=1))
    assert told.said == [("claude-code.BrandNew", "harness", {"detail": 1})]
    assert claude_code.told_by({"hook_event_name": ["?"]}).said[0][0] == "claude-code.hook"


def test_codex_is_told_like_its_rollout() -> None:
    call = {**bash("PreToolUse", call_id="call_1"), "turn_id": "t", "model": "gpt"}
    assert codex.told_by(call).said == [
        ("tool_call", "model", {"tool": "Bash", "args": {"command": "make test"}, "call_id": "call_1"})
    ]
    result = {**bash("PostToolUse", call_id="call_1"), "tool_response": "Exit code: 2\nOutput:\nno rule"}
    [(kind, actor, payload)] = codex.told_by(result).said
    assert (kind, actor, payload["call_id"], payload["exit_code"]) == ("tool_result", "harness", "call_1", 2)
    assert codex.told_by(result).state == WORKING


def test_codex_asks_for_a_permission() -> None:
    told = codex.told_by(bash("PermissionRequest"))
    assert told.said == [("waiting", "harness", {"question": "Codex asks to use Bash: make test"})]


def test_codex_notifies_of_the_end_of_a_turn() -> None:
    hook = {
        "type": "agent-turn-complete",
        "thread-id": "t1",
        "input-messages": ["Rename foo"],
        "last-assistant-message": "Renamed.",
    }
    assert codex.place(hook) == ("t1", None, "Rename foo")
    assert codex.told_by(hook).said == [("waiting", "model", {"question": "Renamed."})]


def test_a_subagent_of_codex_is_a_thread_of_its_own() -> None:
    assert codex.place(claude("SubagentStart", agent_id="child")) == ("child", S, None)
    assert codex.place(claude("Stop")) == (S, None, None)


def test_gemini_is_told_by_its_own_names() -> None:
    assert gemini.told_by(claude("BeforeAgent", prompt="Fix it")).said[1] == WORKING
    assert gemini.told_by(bash("BeforeTool")).said == [
        ("tool_call", "model", {"tool": "Bash", "args": {"command": "make test"}})
    ]
    after = gemini.told_by(bash("AfterTool", tool_response={"llmContent": [{"text": "ok"}]}))
    assert after.said == [("tool_result", "harness", {"tool": "Bash", "output": "ok"})]
    failed = gemini.told_by(bash("AfterTool", tool_response={"llmContent": "", "error": {"message": "no"}}))
    assert failed.said[0][2] == {"tool": "Bash", "output": '{"message": "no"}', "is_error": True}
    assert gemini.told_by(claude("Notification", message="Allow?")).state == (
        "waiting",
        "harness",
        {"question": "Allow?"},
    )
    assert gemini.told_by(claude("AfterAgent", prompt_response="Done.")).said == [
        ("waiting", "model", {"question": "Done."})
    ]
    assert gemini.told_by(claude("PreCompress", trigger="auto")).said == [
        ("compaction", "harness", {"trigger": "auto"})
    ]
