from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ledger.transcripts import claude_stream, codex_stream, opencode_stream
from ledger.transcripts.model import NoSession
from tests.unit.transcripts.reading_all import Row, told, write_lines

# Claude Code

S = "aaaa-1"


def claude(type_: str, session_id: str = S, **fields: Any) -> Row:
    return {"type": type_, "session_id": session_id, **fields}


def init(session_id: str = S) -> Row:
    return claude("system", session_id, subtype="init", cwd="/home/dev/app", model="claude-test-1")


def said_by_claude(id_: str, text: str, output_tokens: int, **fields: Any) -> Row:
    usage = {"input_tokens": 10, "output_tokens": output_tokens}
    content = [{"type": "text", "text": text}]
    return claude("assistant", message={"id": id_, "model": "m", "content": content, "usage": usage}, **fields)


def claude_result(subtype: str = "success", session_id: str = S, **fields: Any) -> Row:
    usage = {"input_tokens": 20, "output_tokens": 60}
    return claude("result", session_id, subtype=subtype, usage=usage, total_cost_usd=0.5, **fields)


def test_a_claude_run_is_a_session_beside_its_transcript_on_the_same_task(tmp_path: Path) -> None:
    prompt = claude("user", message={"content": "Fix it"})
    told_ = told(claude_stream, write_lines(tmp_path / "s.jsonl", init(), prompt, claude_result(result="Fixed")))
    session = told_.sessions[f"{S}.stream"]
    assert (session.thread_id, session.title) == (S, "Fix it")
    assert (session.cwd, session.model) == ("/home/dev/app", "claude-test-1")
    assert told_.of_kind("result")[-1] == {"state": "done", "summary": "Fixed"}


def test_a_result_adds_only_the_tokens_that_no_message_has_told(tmp_path: Path) -> None:
    rows = [init(), said_by_claude("m1", "a", 1), said_by_claude("m1", "b", 5), said_by_claude("m2", "c", 2)]
    told_ = told(claude_stream, write_lines(tmp_path / "s.jsonl", *rows, claude_result()))
    assert (told_.usage["input_tokens"], told_.usage["output_tokens"]) == (20, 60)
    last = {one["message_id"]: one for one in told_.of_kind("usage")}
    assert sum(one["cost_usd"] for one in last.values()) == 0.5


def test_a_run_without_messages_counts_what_its_result_says(tmp_path: Path) -> None:
    rows = [init(), claude_result("error_during_execution", is_error=True, errors=["Permission denied"], result="")]
    told_ = told(claude_stream, write_lines(tmp_path / "s.jsonl", *rows))
    assert told_.usage["output_tokens"] == 60
    assert told_.of_kind("result")[-1] == {"state": "failed", "summary": "Permission denied"}


def test_a_result_that_another_turn_follows_is_not_the_end(tmp_path: Path) -> None:
    rows = [init(), claude_result(result="one"), init(), claude_result(result="two")]
    path = write_lines(tmp_path / "s.jsonl", *rows)
    ends = [one for one in told(claude_stream, path).of_kind("result") if one["state"] != "working"]
    assert ends == [{"state": "done", "summary": "two"}]
    write_lines(path, *rows[:3])
    assert all(one["state"] == "working" for one in told(claude_stream, path).of_kind("result"))


def test_one_file_may_hold_several_runs(tmp_path: Path) -> None:
    rows = [init("a"), claude_result(session_id="a"), init("b"), claude_result("error", "b", is_error=True)]
    told_ = told(claude_stream, write_lines(tmp_path / "s.jsonl", *rows))
    ends = {id_: events[-1]["payload"]["state"] for id_, events in told_.events.items()}
    assert ends == {"a.stream": "done", "b.stream": "failed"}


def test_a_subagents_rows_are_a_child_of_the_run(tmp_path: Path) -> None:
    rows = [init(), said_by_claude("m9", "looking", 1, parent_tool_use_id="toolu_1"), claude_result()]
    told_ = told(claude_stream, write_lines(tmp_path / "s.jsonl", *rows))
    child = told_.sessions[f"{S}.stream.sidechain-toolu_1"]
    assert (child.parent_session_id, child.thread_id) == (f"{S}.stream", S)


# Codex


def codex_item(stage: str, **fields: Any) -> Row:
    return {"type": f"item.{stage}", "item": fields}


def test_a_codex_run_says_its_commands_its_words_and_how_it_ended(tmp_path: Path) -> None:
    command = {"id": "i1", "type": "command_execution", "command": "pytest -q"}
    rows = [
        {"type": "thread.started", "thread_id": "t1"},
        {"type": "turn.started"},
        codex_item("started", **command, aggregated_output="", exit_code=None, status="in_progress"),
        codex_item("completed", **command, aggregated_output="F\n", exit_code=1, status="failed"),
        codex_item("completed", id="i2", type="file_change", changes=[{"path": "a.py"}], status="completed"),
        codex_item("completed", id="i3", type="reasoning", text="hm"),
        codex_item("completed", id="i4", type="agent_message", text="Fixed."),
        codex_item("completed", id="i5", type="error", message="cut"),
        {"type": "turn.completed", "usage": {"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 7}},
    ]
    told_ = told(codex_stream, write_lines(tmp_path / "s.jsonl", *rows))
    assert list(told_.sessions) == ["t1.stream"]
    assert [one for one in told_.said if one[0] != "usage"] == [
        ("result", "harness", {"state": "working"}),
        ("tool_call", "model", {"tool": "shell", "args": {"command": "pytest -q"}, "call_id": "i1"}),
        ("tool_result", "harness", {"call_id": "i1", "output": "F\n", "exit_code": 1, "is_error": True}),
        ("tool_call", "model", {"tool": "file_change", "args": {"changes": [{"path": "a.py"}]}, "call_id": "i2"}),
        ("tool_result", "harness", {"call_id": "i2", "output": ""}),
        ("message", "model", {"role": "thinking", "text": "hm"}),
        ("message", "model", {"role": "assistant", "text": "Fixed."}),
        ("error", "harness", {"message": "cut"}),
        ("result", "harness", {"state": "done", "summary": "Fixed."}),
    ]
    assert told_.usage == {"input_tokens": 40, "output_tokens": 7, "cache_read_tokens": 60, "cache_write_tokens": 0}


def test_a_codex_run_that_fails_says_why(tmp_path: Path) -> None:
    rows = [
        {"type": "thread.started", "thread_id": "t1"},
        {"type": "turn.started"},
        {"type": "turn.failed", "error": {"message": "no npm"}},
        {"type": "error", "message": "exited"},
    ]
    told_ = told(codex_stream, write_lines(tmp_path / "s.jsonl", *rows))
    assert told_.of_kind("result")[-1] == {"state": "failed", "summary": "no npm"}
    assert told_.of_kind("error") == [{"message": "exited"}]


def test_a_total_that_is_told_again_counts_once(tmp_path: Path) -> None:
    def completed(n: int) -> list[Row]:
        return [
            {"type": "turn.started"},
            {"type": "turn.completed", "usage": {"input_tokens": n, "output_tokens": n}},
        ]

    rows = [{"type": "thread.started", "thread_id": "t1"}, *completed(10), *completed(30)]
    assert told(codex_stream, write_lines(tmp_path / "s.jsonl", *rows)).usage["input_tokens"] == 30


# opencode


def printed(type_: str, **part: Any) -> Row:
    return {"type": type_, "timestamp": 1767036059338, "sessionID": "ses_1", "part": part}


def step(reason: str | None) -> Row:
    tokens = {"input": 5, "output": 2, "reasoning": 1, "cache": {"read": 3, "write": 4}}
    fields = {"reason": reason} if reason else {}
    return printed("step_finish", id=f"prt_{reason}", type="step-finish", cost=0.25, tokens=tokens, **fields)


@pytest.mark.parametrize(
    ("reason", "ending"),
    [
        ("stop", {"state": "done", "summary": "Fixed."}),
        ("length", {"state": "failed", "summary": "The last step finished with length"}),
        ("tool-calls", {"state": "working"}),
        (None, {"state": "working"}),
    ],
)
def test_an_opencode_run_ends_as_its_last_step_finished(tmp_path: Path, reason: str | None, ending: Row) -> None:
    rows = [
        printed("step_start", type="step-start"),
        printed("text", type="text", text="Fixed.", time={"end": 1}),
        step(reason),
    ]
    told_ = told(opencode_stream, write_lines(tmp_path / "s.jsonl", *rows))
    assert told_.of_kind("result")[-1] == ending
    assert told_.usage == {"input_tokens": 5, "output_tokens": 3, "cache_read_tokens": 3, "cache_write_tokens": 4}
    assert all(event["at"] == 1767036059338 for event in told_.all)


def test_an_error_ends_an_opencode_run_unless_it_goes_on(tmp_path: Path) -> None:
    error = {"type": "error", "timestamp": 1, "sessionID": "ses_1", "error": {"data": {"message": "429"}}}
    start = printed("step_start", type="step-start")
    path = write_lines(tmp_path / "s.jsonl", start, error)
    assert told(opencode_stream, path).of_kind("result")[-1] == {"state": "failed", "summary": "429"}
    write_lines(path, start, error, start)
    assert told(opencode_stream, path).of_kind("result")[-1] == {"state": "working"}


def test_a_stream_that_names_no_session_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoSession, match="no row names a session"):
        told(codex_stream, write_lines(tmp_path / "s.jsonl", {"type": "turn.started"}))
