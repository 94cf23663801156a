from __future__ import annotations

import pytest

from tests.unit.transcripts.written import AT, assistant, call, result, said, system, text, user

WORKING = ("result", "harness", {"state": "working"})
ANSWERED = ("result", "harness", {"state": "working", "call_id": "toolu_1"})


def test_a_typed_prompt_is_a_message_of_the_user_and_sets_the_agent_to_work() -> None:
    assert said(user("fix it")) == [("message", "user", {"role": "user", "text": "fix it"}), WORKING]


def test_the_blocks_of_an_assistant_row_are_said_in_their_order_and_then_its_usage() -> None:
    row = assistant(
        {"type": "thinking", "thinking": "hm", "signature": "x"}, text("I look."), call("Bash", {"command": "ls"})
    )
    source = {"message_id": "msg_1", "model": "claude-test-1"}
    assert said(row) == [
        ("message", "model", {"role": "thinking", "text": "hm", **source}),
        ("message", "model", {"role": "assistant", "text": "I look.", **source}),
        ("tool_call", "model", {"tool": "Bash", "args": {"command": "ls"}, "call_id": "toolu_1"}),
        (
            "usage",
            "model",
            source | {"input_tokens": 3, "output_tokens": 1, "cache_read_tokens": 2000, "cache_write_tokens": 100},
        ),
    ]


@pytest.mark.parametrize(
    ("block", "tool_use_result", "ending"),
    [
        (result("ok"), {"stdout": "ok", "stderr": "", "interrupted": False}, {"exit_code": 0}),
        (result("Exit code 2\nbad", is_error=True), "Error: …", {"is_error": True, "exit_code": 2}),
        (result("no", is_error=True), "User rejected tool use", {"is_error": True}),
        (result("half"), {"stdout": "half", "interrupted": True}, {}),
        (result("started"), {"stdout": "", "backgroundTaskId": "b1"}, {}),
        (result(""), {"stdout": "", "returnCodeInterpretation": "No matches found"}, {}),
        (result("1\tx"), {"type": "text", "file": {}}, {}),
    ],
)
def test_an_exit_code_is_given_only_where_the_transcript_shows_it(block, tool_use_result, ending) -> None:
    [event] = said(user([block], toolUseResult=tool_use_result))
    assert event == ("tool_result", "harness", {"call_id": "toolu_1", "output": block["content"], **ending})


def test_the_data_of_an_image_is_left_out_and_its_size_said() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 5000}}
    [event] = said(user([result([text("see"), image])]))
    assert event[2] == {
        "call_id": "toolu_1",
        "output": "see\n[image image/png, 5,000 bytes]",
        "truncated_bytes": 5000,
    }


def test_a_question_to_a_person_waits_until_it_is_answered() -> None:
    asked = assistant(call("AskUserQuestion", {"questions": [{"question": "Which one?"}]}))
    answered = user([result("…")], toolUseResult={"questions": [], "answers": {"Which one?": "this"}})
    assert said(asked)[1] == ("waiting", "model", {"question": "Which one?", "call_id": "toolu_1"})
    assert said(answered)[-1] == ("result", "harness", {"state": "working", "call_id": "toolu_1"})


def test_a_question_that_is_turned_down_waits_for_the_next_prompt() -> None:
    rejected = user([result("…", is_error=True)], toolUseResult="User rejected tool use")
    assert [kind for kind, _, _ in said(rejected)] == ["tool_result"]
    assert said(user([text("[Request interrupted by user for tool use]")]))[-1][0] == "message"
    assert said(user("use the other"))[-1] == WORKING


def test_a_question_that_the_harness_refused_does_not_wait() -> None:
    refused = user([result("<tool_use_error>InputValidationError</tool_use_error>", is_error=True)])
    assert said(refused)[-1] == ("result", "harness", {"state": "working", "call_id": "toolu_1"})


def test_an_api_error_is_an_error_and_no_usage() -> None:
    row = assistant(text("API Error: 529 Overloaded"), isApiErrorMessage=True, error="overloaded")
    assert said(row) == [("error", "harness", {"message": "API Error: 529 Overloaded", "error": "overloaded"})]


def test_the_message_of_a_nested_api_error_is_found() -> None:
    error = {"status": 529, "error": {"type": "error", "error": {"message": "Overloaded"}}}
    row = system("api_error", error=error, retryAttempt=2, maxRetries=10)
    assert said(row) == [("error", "harness", {"message": "Overloaded", "retry": 2, "retries_max": 10})]


def test_a_compaction_says_its_trigger_and_size_and_its_summary_is_the_harness_speaking() -> None:
    boundary = system("compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 167117})
    summary = user("This session is being continued", isCompactSummary=True)
    assert said(boundary, summary) == [
        ("compaction", "harness", {"trigger": "auto", "tokens_before": 167117}),
        ("message", "harness", {"role": "harness", "text": "This session is being continued"}),
    ]


@pytest.mark.parametrize(
    ("wrapped", "actor", "shown"),
    [
        ("<command-name>/model</command-name>\n<command-args>opus</command-args>", "user", "/model opus"),
        ("<local-command-stdout>Set to opus</local-command-stdout>", "harness", "Set to opus"),
        ("<bash-input>git status</bash-input>", "user", "! git status"),
        ("<bash-stdout>clean</bash-stdout><bash-stderr></bash-stderr>", "harness", "clean"),
    ],
)
def test_a_local_command_is_shown_without_its_wrapping(wrapped: str, actor: str, shown: str) -> None:
    for row in (user(wrapped), system("local_command", content=wrapped)):
        [(kind, by, payload)] = said(row)
        assert (kind, by, payload["text"]) == ("message", actor, shown)


def test_markup_that_a_person_typed_is_theirs() -> None:
    assert said(user("<b>why</b> is this bold?"))[0] == (
        "message",
        "user",
        {"role": "user", "text": "<b>why</b> is this bold?"},
    )


def test_a_prompt_queued_while_the_agent_worked_is_not_lost() -> None:
    row = user(None) | {"type": "attachment", "attachment": {"type": "queued_command", "prompt": "and the docs"}}
    assert said(row)[0] == ("message", "user", {"role": "user", "text": "and the docs"})


def test_echoes_settings_and_blank_texts_say_nothing() -> None:
    quiet = [
        {"type": "progress", "data": {"type": "hook_progress"}, "timestamp": AT},
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
        {"type": "queue-operation", "operation": "enqueue", "content": "/mcp"},
        {"type": "summary", "summary": "Another session", "leafUuid": "x"},
        {"type": "permission-mode", "permissionMode": "plan"},
        system("turn_duration", durationMs=5),
        system("stop_hook_summary", hookErrors=[], stopReason=""),
        user("<local-command-caveat>Caveat: …</local-command-caveat>", isMeta=True),
    ]
    assert said(*quiet) == []
    assert [kind for kind, _, _ in said(assistant(text("\n\n")))] == ["usage"]


def test_a_stop_hook_that_failed_is_told() -> None:
    [(kind, actor, payload)] = said(system("stop_hook_summary", hookErrors=["exit 2: tests fail"], stopReason=""))
    assert (kind, actor, payload["text"]) == ("message", "harness", "Stop hook:\nexit 2: tests fail")


def test_an_unknown_row_or_block_is_kept_under_a_name_that_means_nothing_to_the_ledger() -> None:
    new_row = user(None) | {"type": "result", "state": "done", "message": None}
    assert said(new_row) == [("claude-code.result", "harness", {"state": "done", "message": None})]
    block = {"type": "goal.failed", "reason": "x", "version": 2}
    assert said(assistant(block))[0] == ("claude-code.goal.failed", "harness", {"reason": "x", "version": 2})


@pytest.mark.parametrize("message", [None, 5, "text", [], {}, {"content": 7}, {"content": [1, None]}])
def test_a_row_of_the_wrong_shape_is_no_reason_to_stop(message: object) -> None:
    for type_ in ("user", "assistant"):
        for kind, actor, payload in said(user(None) | {"type": type_, "message": message}):
            assert isinstance(kind, str)
            assert actor
            assert isinstance(payload, dict)
