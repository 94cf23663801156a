from __future__ import annotations

import os
from pathlib import Path

import pytest

from ledger.transcripts import formats
from ledger.transcripts.finding import Finder, candidates
from ledger.transcripts.formats import AGENTS, format_of, places
from ledger.transcripts.model import Report
from tests.unit.transcripts.opencode_written import conversation, into_database
from tests.unit.transcripts.reading_all import Row, Told, write_json, write_lines
from tests.unit.transcripts.written import as_lines, user


@pytest.mark.parametrize(
    ("row", "format_"),
    [
        (user("go"), formats.CLAUDE_CODE),
        ({"type": "system", "subtype": "init", "session_id": "s"}, formats.CLAUDE_STREAM),
        ({"timestamp": "t", "type": "session_meta", "payload": {"id": "x"}}, formats.CODEX),
        ({"id": "x", "timestamp": "t", "instructions": None}, formats.CODEX),
        ({"type": "thread.started", "thread_id": "x"}, formats.CODEX_STREAM),
        ({"type": "step_start", "sessionID": "s", "part": {}}, formats.OPENCODE_STREAM),
        ({"sessionId": "x", "projectHash": "h", "startTime": "t"}, formats.GEMINI),
        ({"display": "hello", "project": "/x"}, None),
        ({"type": "event", "data": {}}, None),
    ],
)
def test_a_line_tells_what_wrote_it_whatever_the_file_is_called(
    tmp_path: Path, row: Row, format_: formats.Format | None
) -> None:
    assert format_of(write_lines(tmp_path / "any.jsonl", {"unknown": 1}, row)) is format_


def test_a_beginning_that_cannot_be_read_does_not_hide_what_follows(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'\0\0\0\n{"half": \n' + as_lines({"type": "summary", "summary": "x"}, user("go")))
    assert format_of(path) is formats.CLAUDE_CODE


def test_documents_and_databases_are_told_by_what_is_in_them(tmp_path: Path) -> None:
    assert format_of(write_json(tmp_path / "a.json", {"sessionId": "x", "messages": []})) is formats.GEMINI
    assert format_of(write_json(tmp_path / "b.json", {"sessionId": "x"})) is None
    assert format_of(write_json(tmp_path / "c.json", [1])) is None
    assert format_of(conversation().into_files(tmp_path / "storage")) is formats.OPENCODE_FILES
    assert format_of(into_database(tmp_path / "d.db", conversation())) is formats.OPENCODE_DB
    (tmp_path / "e.db").write_bytes(b"no database")
    assert format_of(tmp_path / "e.db") is None


def test_the_files_of_opencodes_messages_and_parts_are_no_candidates(tmp_path: Path) -> None:
    session = conversation().into_files(tmp_path / "storage")
    assert list(candidates(tmp_path)) == [session]


def test_only_the_agents_that_are_looked_for_are_found(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "t.jsonl", user("go"))
    assert Finder({"codex"}).found_at(path) is None
    assert Finder(AGENTS).found_at(path) is not None


def test_the_agents_folders_follow_their_variables() -> None:
    home = [("HOME", "/home/dev")]
    assert places(home)["codex"] == [Path("/home/dev/.codex/sessions"), Path("/home/dev/.codex/archived_sessions")]
    assert places([*home, ("CODEX_HOME", "/c")])["codex"][0] == Path("/c/sessions")
    assert places([*home, ("CLAUDE_CONFIG_DIR", "/k")])["claude-code"] == [Path("/k/projects")]
    assert places([*home, ("XDG_DATA_HOME", "/d")])["opencode"] == [Path("/d/opencode")]
    assert set(places(home)) == set(AGENTS)


# What real transcripts hold, counted by other means than the readers'


@pytest.mark.skipif(
    not os.environ.get("LEDGERD_TRANSCRIPTS"), reason="LEDGERD_TRANSCRIPTS names no folder of real transcripts"
)
def test_real_transcripts_give_the_totals_that_a_plain_count_gives() -> None:
    from tests.unit.transcripts.counting import counted_apart

    finder = Finder(AGENTS)
    paths = list(candidates(Path(os.environ["LEDGERD_TRANSCRIPTS"])))
    assert paths
    for path in paths:
        for found in finder.found_at(path) or pytest.fail(f"{path} is of no known format"):
            report = Report()

            def open_(report: Report, found: object = found) -> object:
                return found.open(report, None, False)

            told = Told(open_)
            assert (report.bad_lines, told.bad) == (0, [])
            counted = counted_apart(path, found.format)
            assert (path, told.usage) == (path, counted.usage)
            assert (path, len(told.of_kind("tool_call"))) == (path, counted.calls)
            assert (path, len(told.of_kind("tool_result"))) == (path, counted.results)
            assert not [event["kind"] for event in told.all if "." in event["kind"]]
