from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ledger.transcripts import codex
from ledger.transcripts.model import NoSession, Report
from tests.unit.transcripts.reading_all import Row, told, write_lines

ID, PARENT, ORIGIN = "0199-own", "0199-parent", "0199-origin"
AT = "2026-03-01T10:00:00.000Z"


def row(type_: str, **payload: Any) -> Row:
    return {"timestamp": AT, "type": type_, "payload": payload}


def meta(id_: str = ID, **fields: Any) -> Row:
    return row("session_meta", id=id_, timestamp="2026-03-01T09:59:58Z", cwd="/home/dev/app", **fields)


def item(type_: str, **fields: Any) -> Row:
    return row("response_item", type=type_, **fields)


def event(type_: str, **fields: Any) -> Row:
    return row("event_msg", type=type_, **fields)


def message(role: str, text: str) -> Row:
    return item("message", role=role, content=[{"type": "input_text", "text": text}])


def tokens(total: int, last: int, cached: int = 0) -> Row:
    def counts(n: int, c: int) -> Row:
        return {"input_tokens": n, "cached_input_tokens": c, "output_tokens": n // 10, "total_tokens": n + n // 10}

    info = {"total_token_usage": counts(total, cached), "last_token_usage": counts(last, cached)}
    return event("token_count", info=info)


def rollout() -> list[Row]:
    return [
        meta(),
        message("user", "<environment_context>\n  <cwd>/home/dev/app</cwd>"),
        message("user", "Fix it"),
        event("user_message", message="Fix it"),
        row("turn_context", model="gpt-test", cwd="/home/dev/app"),
        event("agent_reasoning", text="hm"),
        item("reasoning", summary=[{"type": "summary_text", "text": "hm"}], encrypted_content="gAAA"),
        item("function_call", name="shell", arguments='{"command":["bash","-lc","ls"]}', call_id="c1"),
        item("function_call_output", call_id="c1", output='{"output":"a.py","metadata":{"exit_code":2}}'),
        tokens(1000, 1000),
        tokens(1000, 1000),
        event("agent_message", message="Done."),
        item("message", role="assistant", content=[{"type": "output_text", "text": "Done."}]),
        tokens(3000, 2000),
    ]


def test_a_rollout_is_a_session_titled_by_what_was_typed(tmp_path: Path) -> None:
    told_ = told(codex, write_lines(tmp_path / "r.jsonl", *rollout()))
    session = told_.sessions[ID]
    assert (session.title, session.cwd, session.model) == ("Fix it", "/home/dev/app", "gpt-test")
    assert (session.thread_id, session.resumed_from, session.parent_session_id) == (ID, None, None)
    assert session.started_at == "2026-03-01T09:59:58Z"


def test_what_is_written_twice_is_said_once(tmp_path: Path) -> None:
    told_ = told(codex, write_lines(tmp_path / "r.jsonl", *rollout()))
    assert [one for one in told_.said if one[0] != "usage"] == [
        ("message", "harness", {"role": "harness", "text": "<environment_context>\n  <cwd>/home/dev/app</cwd>"}),
        ("message", "user", {"role": "user", "text": "Fix it"}),
        ("result", "harness", {"state": "working"}),
        ("message", "model", {"role": "thinking", "text": "hm"}),
        ("tool_call", "model", {"tool": "shell", "args": {"command": ["bash", "-lc", "ls"]}, "call_id": "c1"}),
        ("tool_result", "harness", {"call_id": "c1", "output": "a.py", "is_error": True, "exit_code": 2}),
        ("message", "model", {"role": "assistant", "text": "Done."}),
    ]


def test_repeated_token_counts_count_once(tmp_path: Path) -> None:
    told_ = told(codex, write_lines(tmp_path / "r.jsonl", *rollout()))
    assert told_.usage == {
        "input_tokens": 3000,
        "output_tokens": 300,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
    }
    assert len(told_.of_kind("usage")) == 3


def test_cached_tokens_are_no_input_tokens(tmp_path: Path) -> None:
    told_ = told(codex, write_lines(tmp_path / "r.jsonl", meta(), tokens(1000, 1000, cached=900)))
    assert (told_.usage["input_tokens"], told_.usage["cache_read_tokens"]) == (100, 900)


def test_without_the_tokens_of_a_request_the_last_total_counts(tmp_path: Path) -> None:
    rows = [meta(), tokens(1000, 0), tokens(3000, 0)]
    for one in rows[1:]:
        del one["payload"]["info"]["last_token_usage"]
    assert told(codex, write_lines(tmp_path / "r.jsonl", *rows)).usage["input_tokens"] == 3000


def test_a_fork_belongs_to_the_thread_and_its_copies_count_as_the_same_requests(tmp_path: Path) -> None:
    origin = told(codex, write_lines(tmp_path / "o.jsonl", meta(ORIGIN), *rollout()[1:]))
    copied = [meta(forked_from_id=ORIGIN), meta(ORIGIN), *rollout()[1:], tokens(7000, 4000)]
    fork = told(codex, write_lines(tmp_path / "f.jsonl", *copied))
    session = fork.sessions[ID]
    assert (session.resumed_from, session.thread_id) == (ORIGIN, ORIGIN)
    together = {one["message_id"]: one for one in origin.of_kind("usage") + fork.of_kind("usage")}
    assert sum(one["input_tokens"] for one in together.values()) == 7000


def test_a_fork_that_only_names_the_session_before_is_known_too(tmp_path: Path) -> None:
    told_ = told(
        codex, write_lines(tmp_path / "f.jsonl", meta(forked_from_id=ORIGIN), event("user_message", message="x"))
    )
    assert (told_.sessions[ID].resumed_from, told_.sessions[ID].thread_id) == (ORIGIN, ORIGIN)


def test_a_subagent_is_a_child_of_the_thread_that_spawned_it(tmp_path: Path) -> None:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1}}}
    path = write_lines(tmp_path / "r.jsonl", meta(source=source), event("user_message", message="look"))
    session = told(codex, path).sessions[ID]
    assert (session.parent_session_id, session.thread_id, session.resumed_from) == (PARENT, PARENT, None)
    assert codex.open_transcript(path, Report()).is_child


@pytest.mark.parametrize(
    ("output", "payload"),
    [
        ("plain", {"output": "plain"}),
        ("Exit code: 3\nWall time: 1\nOutput:\nno", {"exit_code": 3, "is_error": True}),
        ("Chunk ID: 1\nProcess exited with code 0\nOutput:\nyes", {"exit_code": 0}),
        ("Chunk ID: 1\nProcess running with session ID 9\nOutput:\nProcess exited with code 4", {}),
        ([{"type": "input_text", "text": "seen"}, {"type": "input_image"}], {"output": "seen\n[input_image]"}),
        ({"content": "no", "success": False}, {"output": "no", "is_error": True}),
    ],
)
def test_an_exit_code_is_given_where_the_output_says_one(tmp_path: Path, output: Any, payload: Row) -> None:
    rows = [meta(), item("function_call_output", call_id="c", output=output)]
    [result] = told(codex, write_lines(tmp_path / "r.jsonl", *rows)).of_kind("tool_result")
    assert result == {"call_id": "c", "output": output} | payload


def test_errors_compaction_and_questions_have_their_kinds(tmp_path: Path) -> None:
    asked = '{"questions":[{"question":"Which?"}]}'
    rows = [
        meta(),
        event("error", message="usage limit reached"),
        event("stream_error", message="retrying"),
        row("compacted", message="…"),
        event("turn_aborted", reason="interrupted"),
        item("function_call", name="request_user_input", arguments=asked, call_id="q"),
        item("function_call_output", call_id="q", output='{"answers":{"1":"that"}}'),
        item("web_search_call", action={"query": "x"}),
        event("brand_new", detail=1),
    ]
    told_ = told(codex, write_lines(tmp_path / "r.jsonl", *rows))
    assert [payload["message"] for payload in told_.of_kind("error")] == ["usage limit reached", "retrying"]
    assert told_.of_kind("compaction") == [{}]
    assert told_.of_kind("waiting") == [{"question": "Which?", "call_id": "q"}]
    assert told_.of_kind("result") == [{"state": "working", "call_id": "q"}]
    assert told_.of_kind("message") == [{"role": "harness", "text": "Turn aborted: interrupted"}]
    assert told_.of_kind("tool_call")[1] == {"tool": "web_search", "args": {"query": "x"}}
    assert told_.of_kind("codex.brand_new") == [{"detail": 1}]


def test_the_first_versions_wrote_bare_items(tmp_path: Path) -> None:
    rows = [
        {"id": ID, "timestamp": AT, "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix it"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]},
    ]
    told_ = told(codex, write_lines(tmp_path / "r.jsonl", *rows))
    assert told_.sessions[ID].title == "Fix it"
    assert [kind for kind, _, _ in told_.said] == ["message", "result", "message"]


def test_going_on_from_the_mark_gives_just_what_is_new(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "r.jsonl", *rollout()[:8])
    first = codex.open_transcript(path, Report())
    before = [event for batch in first.batches() for event in batch.events]
    write_lines(path, *rollout())
    rest = codex.open_transcript(path, Report(), first.mark)
    after = [event for batch in rest.batches() for event in batch.events]
    assert before + after == told(codex, path).all


def test_a_file_without_a_session_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoSession, match="no row names a session"):
        told(codex, write_lines(tmp_path / "r.jsonl", event("user_message", message="x")))
