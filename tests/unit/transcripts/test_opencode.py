from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ledger.transcripts import opencode_db, opencode_files
from tests.unit.transcripts.opencode_written import (
    SESSION,
    START_MS,
    Records,
    conversation,
    id_at,
    into_database,
)
from tests.unit.transcripts.reading_all import Told

CHILD = "ses_0000000000eeAbCdEfGhIjKlMn"


def from_database(path: Path, session_id: str = SESSION) -> Told:
    record = next(record for record, _ in opencode_db.sessions(path) if record.id == session_id)
    return Told(lambda report: opencode_db.open_transcript(path, record, report))


def from_files(path: Path) -> Told:
    return Told(lambda report: opencode_files.open_transcript(path, report))


def both(tmp_path: Path, records: Records) -> tuple[Told, Told]:
    return from_database(into_database(tmp_path / "opencode.db", records)), from_files(
        records.into_files(tmp_path / "storage")
    )


def test_the_database_and_the_older_files_tell_the_same_under_the_same_keys(tmp_path: Path) -> None:
    database, files = both(tmp_path, conversation())
    assert database.events == files.events
    assert database.sessions == files.sessions
    assert [one for one in database.said if one[0] != "usage"] == [
        ("message", "user", {"role": "user", "text": "Fix it"}),
        ("result", "harness", {"state": "working"}),
        ("message", "model", {"role": "thinking", "text": "hm"}),
        ("tool_call", "model", {"tool": "bash", "args": {"command": "ls"}, "call_id": "c1"}),
        ("tool_result", "harness", {"call_id": "c1", "tool": "bash", "output": "a.py", "exit_code": 0}),
        ("message", "model", {"role": "assistant", "text": "Done."}),
    ]
    assert database.usage == {
        "input_tokens": 100,
        "output_tokens": 25,
        "cache_read_tokens": 300,
        "cache_write_tokens": 40,
    }
    session = database.sessions[SESSION]
    assert (session.title, session.cwd, session.model) == ("Fix it", "/home/dev/app", "m-1")
    assert session.started_at == START_MS


def test_what_is_still_being_written_is_told_once_it_has_settled(tmp_path: Path) -> None:
    whole = from_database(into_database(tmp_path / "whole.db", conversation()))
    records = conversation()
    running = [dict(part) for part in records.parts]
    running[3]["state"] = {"status": "running", "input": {"command": "ls"}}
    running[4] = {**running[4], "text": "Do", "time": {"start": START_MS + 40}}
    records.parts = running[:5]
    del records.messages[1]["time"]["completed"]
    early = from_database(into_database(tmp_path / "early.db", records))
    assert [kind for kind, _, _ in early.said] == ["message", "result", "message", "tool_call"]
    later = {event["seq"]: event for event in whole.all}
    for event in early.all:
        assert later[event["seq"]]["payload"] == event["payload"]


def test_a_seq_stays_below_what_a_json_reader_holds_exactly(tmp_path: Path) -> None:
    told_ = from_database(into_database(tmp_path / "opencode.db", conversation()))
    seqs = [event["seq"] for event in told_.events[SESSION]]
    assert seqs == sorted(seqs)
    assert 0 < seqs[0] < seqs[-1] < 2**53


def test_a_session_over_the_turn_of_its_ids_clock_keeps_its_order(tmp_path: Path) -> None:
    turn = (START_MS // 2**36 + 1) * 2**36 - START_MS  # ms from the start to the next turn
    records = Records(created=turn - 50)
    for at in (turn - 10, turn + 10):
        message = records.message("user", at)
        records.part(message, at + 1, "text", text=str(at))
    told_ = from_database(into_database(tmp_path / "opencode.db", records))
    assert [one["text"] for one in told_.of_kind("message")] == [str(turn - 10), str(turn + 10)]


def test_other_ids_are_counted_by_place(tmp_path: Path) -> None:
    records = Records("ses_one")
    for number in (1, 2):
        message = records.message("user", number, id_=f"msg_{number}")
        records.part(message, number, "text", id_=f"prt_{number}", text=f"prompt {number}")
    told_ = from_database(into_database(tmp_path / "opencode.db", records), "ses_one")
    assert [(event["seq"], event["kind"]) for event in told_.all] == [
        (16000, "message"),
        (16001, "result"),
        (32000, "message"),
        (32001, "result"),
    ]


def test_an_odd_id_among_others_is_named_and_left_out(tmp_path: Path) -> None:
    records = conversation()
    records.part(records.messages[0]["id"], 12, "text", id_="prt_odd", text="odd")
    told_ = from_database(into_database(tmp_path / "opencode.db", records))
    assert ["prt_odd" in str(bad) for bad in told_.bad] == [True]
    assert "odd" not in [one.get("text") for one in told_.of_kind("message")]


def test_a_subagents_session_is_a_child_and_comes_after_its_parent(tmp_path: Path) -> None:
    child = conversation(Records(CHILD, created=-5, parentID=SESSION), after=1000)
    path = into_database(tmp_path / "opencode.db", child, conversation())
    assert [record.id for record, _ in opencode_db.sessions(path)] == [SESSION, CHILD]
    session = from_database(path, CHILD).sessions[CHILD]
    assert (session.parent_session_id, session.thread_id) == (SESSION, SESSION)
    conversation().into_files(tmp_path / "storage")
    assert from_files(child.into_files(tmp_path / "storage")).sessions[CHILD] == session


def test_what_a_fork_copied_costs_nothing_again(tmp_path: Path) -> None:
    fork = Records("ses_0000000000ddAbCdEfGhIjKlMn", created=1000)
    copied = fork.message("assistant", 20, made_at=1001, modelID="m", time={"completed": START_MS + 30})
    fork.part(copied, 1002, "text", text="Done.", time={"end": START_MS + 25})
    tokens = {"input": 100, "output": 20}
    fork.part(copied, 1003, "step-finish", tokens=tokens, cost=0.5)
    own = fork.message("assistant", 2000, time={"completed": START_MS + 2030})
    fork.part(own, 2003, "step-finish", tokens={"input": 7, "output": 1}, cost=0.1)
    told_ = from_database(into_database(tmp_path / "opencode.db", fork), fork.session["id"])
    assert told_.usage["input_tokens"] == 7
    assert [one["text"] for one in told_.of_kind("message")] == ["Done."]


def test_errors_questions_and_compaction_have_their_kinds(tmp_path: Path) -> None:
    records = Records()
    error = {"name": "APIError", "data": {"message": "overloaded"}}
    failed = records.message("assistant", 10, error=error)
    records.part(failed, 11, "retry", attempt=1, error={"data": {"message": "429"}})
    records.part(failed, 12, "compaction", auto=True)
    questions = {"questions": [{"question": "Which?"}]}
    records.part(failed, 13, "tool", tool="question", callID="q", state={"status": "running", "input": questions})
    state = {"status": "error", "input": {}, "error": "no such file", "metadata": {}}
    records.part(failed, 14, "tool", tool="read", callID="r", state=state)
    records.part(failed, 15, "brand-new", detail=1)
    aborted = records.message("assistant", 20, error={"name": "MessageAbortedError", "data": {}})
    assert aborted == id_at("msg", START_MS + 20)
    told_ = from_database(into_database(tmp_path / "opencode.db", records))
    assert [one["message"] for one in told_.of_kind("error")] == ["overloaded", "429"]
    assert told_.of_kind("compaction") == [{"trigger": "auto"}]
    assert told_.of_kind("waiting") == [{"question": "Which?", "call_id": "q"}]
    assert told_.of_kind("tool_result") == [
        {"call_id": "r", "tool": "read", "output": "no such file", "is_error": True}
    ]
    assert told_.of_kind("opencode.brand-new") == [{"detail": 1}]
    assert told_.of_kind("message") == [{"role": "harness", "text": "Aborted"}]


def test_a_record_that_is_no_json_is_named_and_the_rest_goes_through(tmp_path: Path) -> None:
    path = into_database(tmp_path / "opencode.db", conversation())
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE part SET data = '{' WHERE data LIKE '%reasoning%'")
    told_ = from_database(path)
    assert len(told_.bad) == 2  # the thought, and the step whose tokens count what was reasoned
    assert "Done." in [one.get("text") for one in told_.of_kind("message")]
    storage = tmp_path / "storage"
    session = conversation().into_files(storage)
    part = next((storage / "part").rglob("*.json"))
    part.write_text("{", encoding="utf-8")
    assert [bad.path for bad in from_files(session).bad] == [part]


def test_a_change_anywhere_in_a_session_shows(tmp_path: Path) -> None:
    other = conversation(Records(CHILD, created=5), after=1000)
    path = into_database(tmp_path / "opencode.db", conversation(), other)
    before = {record.id: changes for record, changes in opencode_db.sessions(path)}
    into_database(path, conversation(), updated=1)
    after = {record.id: changes for record, changes in opencode_db.sessions(path)}
    assert before[SESSION] != after[SESSION]
    assert before[CHILD] == after[CHILD]


def test_a_database_that_is_none_is_an_error_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    path.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    assert not opencode_db.is_opencode(path)
    with pytest.raises(OSError, match=r"opencode\.db"):
        opencode_db.sessions(path)
