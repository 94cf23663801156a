from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ledger.transcripts import gemini
from ledger.transcripts.model import NoSession, Report
from tests.unit.transcripts.reading_all import Row, told, write_json, write_lines

ID = "0b23-own"
ABOUT = {"sessionId": ID, "projectHash": "h", "startTime": "2026-03-01T10:00:00.000Z"}
DAY = 86_400_000


def message(number: int, type_: str, content: Any, **fields: Any) -> Row:
    at = f"2026-03-01T10:00:{number:02}.000Z"
    return {"id": f"m{number}", "timestamp": at, "type": type_, "content": content, **fields}


def call(status: str, **fields: Any) -> Row:
    return {"id": "c1", "name": "run_shell", "args": {"command": "ls"}, "status": status, **fields}


def answered(output: Any, status: str = "success") -> Row:
    return call(status, result=[{"functionResponse": {"id": "c1", "response": output}}])


def conversation() -> list[Row]:
    tokens = {"input": 100, "output": 20, "cached": 60, "thoughts": 5, "tool": 3, "total": 128}
    thoughts = [{"subject": "Looking", "description": "at it"}]
    return [
        message(1, "user", "Fix it"),
        message(
            2,
            "gemini",
            "I look.",
            thoughts=thoughts,
            tokens=tokens,
            model="g-1",
            toolCalls=[answered({"output": "a"})],
        ),
        message(3, "gemini", "Done.", tokens={"input": 10, "output": 2, "total": 12}, model="g-1"),
    ]


def document(tmp_path: Path, *messages: Row, name: str = "session-1.json") -> Path:
    return write_json(tmp_path / "chats" / name, {**ABOUT, "messages": list(messages)})


def test_a_chat_is_a_session_with_its_messages_and_tools(tmp_path: Path) -> None:
    told_ = told(gemini, document(tmp_path, *conversation()))
    source = {"message_id": "m2", "model": "g-1"}
    assert [one for one in told_.said if one[0] != "usage"] == [
        ("message", "user", {"role": "user", "text": "Fix it"}),
        ("result", "harness", {"state": "working"}),
        ("message", "model", {"role": "thinking", "text": "Looking\nat it", **source}),
        ("message", "model", {"role": "assistant", "text": "I look.", **source}),
        ("tool_call", "model", {"tool": "run_shell", "args": {"command": "ls"}, "call_id": "c1"}),
        ("tool_result", "harness", {"call_id": "c1", "tool": "run_shell", "output": "a"}),
        ("message", "model", {"role": "assistant", "text": "Done.", "message_id": "m3", "model": "g-1"}),
    ]
    session = told_.sessions[ID]
    assert (session.title, session.model, session.started_at) == ("Fix it", "g-1", ABOUT["startTime"])


def test_cached_tokens_are_no_input_and_thoughts_are_output(tmp_path: Path) -> None:
    usage = told(gemini, document(tmp_path, *conversation())).usage
    assert usage == {"input_tokens": 53, "output_tokens": 27, "cache_read_tokens": 60, "cache_write_tokens": 0}


def test_a_chat_has_the_same_keys_however_far_it_had_come_when_it_was_read(tmp_path: Path) -> None:
    messages = conversation()
    whole = {event["seq"]: event for event in told(gemini, document(tmp_path, *messages)).all}
    unfinished = {**messages[1], "tokens": None, "toolCalls": [call("executing")]}
    for state in (messages[:1], [messages[0], unfinished], messages[:2]):
        for event in told(gemini, document(tmp_path, *state)).all:
            assert whole[event["seq"]] == event


def test_a_rewind_moves_no_message_to_another_key(tmp_path: Path) -> None:
    messages = conversation()
    before = {event["seq"] for event in told(gemini, document(tmp_path, *messages)).all}
    after = told(gemini, document(tmp_path, messages[0], message(9, "user", "another way")))
    added = [event for event in after.all if event["seq"] not in before]
    assert [event["payload"].get("text") for event in added] == ["another way", None]


def test_the_lines_of_a_later_version_have_the_keys_of_the_document(tmp_path: Path) -> None:
    messages = conversation()
    unfinished = {**messages[1], "tokens": None, "toolCalls": [call("executing")]}
    masked = {**messages[1], "toolCalls": [answered({"output": "[masked]"})]}
    rows = [
        ABOUT,
        messages[0],
        {"$set": {"lastUpdated": "x"}},
        unfinished,
        messages[1],
        messages[2],
        {"$set": {"messages": [messages[0], masked]}},
        {"$rewindTo": "m3"},
    ]
    lines = told(gemini, write_lines(tmp_path / "chats" / "session-1.jsonl", *rows))
    assert lines.events == told(gemini, document(tmp_path, *messages)).events


def test_messages_of_the_same_moment_or_an_earlier_one_keep_their_order(tmp_path: Path) -> None:
    messages = [message(5, "user", "one"), message(5, "info", "two"), message(1, "user", "three")]
    for number, one in enumerate(messages):
        one["id"] = f"x{number}"
    told_ = told(gemini, document(tmp_path, *messages))
    assert [one["text"] for one in told_.of_kind("message")] == ["one", "two", "three"]
    assert told_.all[0]["seq"] == (DAY + 5000) * 1000 + 400


def test_errors_and_failed_tools_show(tmp_path: Path) -> None:
    failed = message(2, "gemini", "", toolCalls=[answered({"error": "no such file"}, "error")])
    told_ = told(gemini, document(tmp_path, message(1, "error", "quota exceeded"), failed, message(3, "new", "x")))
    assert told_.of_kind("error") == [{"message": "quota exceeded"}]
    assert told_.of_kind("tool_result")[0]["is_error"] is True
    assert told_.of_kind("tool_result")[0]["output"] == "no such file"
    assert told_.of_kind("message") == []


def test_a_subagents_chat_is_a_child_of_the_session_whose_folder_it_lies_in(tmp_path: Path) -> None:
    rows = [{**ABOUT, "kind": "subagent", "directories": ["/home/dev/app"]}, message(1, "user", [{"text": "look"}])]
    path = write_lines(tmp_path / "chats" / "parent-id" / f"{ID}.jsonl", *rows)
    session = told(gemini, path).sessions[ID]
    assert (session.parent_session_id, session.thread_id) == ("parent-id", "parent-id")
    assert (session.title, session.cwd) == ("look", "/home/dev/app")
    assert gemini.open_transcript(path, Report()).is_child


def test_a_document_cut_short_is_named(tmp_path: Path) -> None:
    path = document(tmp_path, *conversation())
    path.write_text(path.read_text(encoding="utf-8")[:-200], encoding="utf-8")
    with pytest.raises(NoSession, match="no whole document"):
        told(gemini, path)
