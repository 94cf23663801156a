from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from ledger.cli import main
from ledger.client.api import Api
from tests.unit.transcripts.written import SESSION, as_lines, assistant, result, text, user, write


class Ledger:
    """Keeps events by (session_id, seq) as a ledger does, and what was opened and created."""

    def __init__(self) -> None:
        self.events: dict[tuple[str, int], Any] = {}
        self.opened: dict[str, dict[str, Any]] = {}
        self.projects: list[str] = []
        self.may_create = True

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        if request.url.path == "/api/projects":
            if not self.may_create:
                return httpx.Response(403, json={"code": "forbidden", "detail": "no"})
            self.projects.append(body["id"])
            return httpx.Response(201, json={"id": body["id"]})
        assert request.url.path == "/api/saddle/chunks"
        return self._chunk(body)

    def _chunk(self, body: dict[str, Any]) -> httpx.Response:
        session_id = body["session_id"]
        if session_id not in self.opened:
            if "open" not in body:
                return httpx.Response(404, json={"code": "unknown_session", "detail": "unknown"})
            self.opened[session_id] = body["open"]
        receipt: dict[str, Any] = {"stored": 0, "duplicates": 0, "conflicts": [], "rejected": []}
        for event in body["events"]:
            held = self.events.setdefault((session_id, event["seq"]), event)
            if held is event:
                receipt["stored"] += 1
            elif held == event:
                receipt["duplicates"] += 1
            else:
                receipt["conflicts"].append({"seq": event["seq"]})
        receipt["high_seq"] = max(seq for id_, seq in self.events if id_ == session_id)
        return httpx.Response(200, json=receipt)


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch) -> Ledger:
    ledger = Ledger()
    transport = httpx.MockTransport(ledger)
    monkeypatch.setattr("ledger.cli.import_.connect", lambda: Api("http://ledger.test", "t", transport=transport))
    return ledger


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["import", "claude-code", *map(str, arguments)])


def numbers(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_importing_again_stores_nothing_and_a_longer_copy_only_what_is_new(ledger: Ledger, tmp_path: Path) -> None:
    rows = [user("go"), assistant(text("ok")), user("and on"), assistant(text("done"), id="msg_2")]
    path = write(tmp_path / "turn-1.jsonl", *rows[:2])
    assert numbers(run("--json", path))["stored"] == 4
    again = numbers(run("--json", path))
    assert (again["stored"], again["duplicates"]) == (0, 4)
    longer = numbers(run("--json", write(tmp_path / "b" / "turn-2.jsonl", *rows)))
    assert (longer["stored"], longer["duplicates"], longer["conflicts"]) == (4, 4, 0)
    assert list(ledger.opened) == [SESSION]


def test_a_session_becomes_a_task_in_the_project_of_its_folder(ledger: Ledger, tmp_path: Path) -> None:
    run(write(tmp_path / "t.jsonl", user("Fix it"), assistant(text("ok"))))
    assert ledger.projects == ["my-app"]
    assert ledger.opened[SESSION] == {
        "task": {"id": f"cc-{SESSION}", "title": "Fix it", "project_id": "my-app"},
        "agent": "claude-code",
        "model": "claude-test-1",
        "cwd": "/home/dev/My App",
        "at": "2026-03-01T10:00:00.000Z",
    }


def test_a_project_can_be_named(ledger: Ledger, tmp_path: Path) -> None:
    run(write(tmp_path / "t.jsonl", user("Fix it")), "--project", "p1")
    assert ledger.projects == ["p1"]
    assert ledger.opened[SESSION]["task"]["project_id"] == "p1"


def test_a_token_that_may_not_create_projects_may_still_import(ledger: Ledger, tmp_path: Path) -> None:
    ledger.may_create = False
    assert numbers(run("--json", write(tmp_path / "t.jsonl", user("Fix it"))))["stored"] == 2


def test_a_parent_is_opened_before_its_subagent_and_both_work_on_one_task(ledger: Ledger, tmp_path: Path) -> None:
    child = write(tmp_path / "a" / "agent-a1.jsonl", user("look", isSidechain=True, agentId="a1"))
    parent = write(tmp_path / "b.jsonl", user("go"))
    assert numbers(run("--json", child, parent))["sessions"] == 2
    assert list(ledger.opened) == [SESSION, f"{SESSION}.agent-a1"]
    opened = ledger.opened[f"{SESSION}.agent-a1"]
    assert opened["parent_session_id"] == SESSION
    assert opened["task"]["id"] == ledger.opened[SESSION]["task"]["id"]


def test_bad_lines_are_named_and_the_rest_goes_through(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(as_lines(user("go")) + b'{"type":"us\n' + as_lines(user("on")) + b'{"half')
    result = run(path)
    assert result.exit_code == 0
    assert f"bad line: {path}:2: no JSON object" in result.stderr
    assert f"bad line: {path}:4: cut short" in result.stderr
    assert "4 events stored" in result.stdout
    assert "2 bad lines" in result.stdout


def test_a_rewritten_transcript_is_told_anew_beside_the_first(ledger: Ledger, tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", user("go"), user([result("one")]), assistant(text("ok")))
    run(path)
    write(path, user("go"), user([result("two")]))
    told = numbers(run("--json", path))
    assert (told["rewritten"], told["conflicts"]) == (1, 0)
    assert ledger.events[SESSION, 2000]["payload"]["output"] == "one"
    assert ledger.events[f"{SESSION}~2", 2000]["payload"]["output"] == "two"
    opened = ledger.opened[f"{SESSION}~2"]
    assert opened["resumed_from"] == SESSION
    assert opened["task"]["id"] == ledger.opened[SESSION]["task"]["id"]
    assert numbers(run("--json", path))["stored"] == 0


def test_a_transcript_rewritten_twice_has_three_sessions(ledger: Ledger, tmp_path: Path) -> None:
    for words in ("one", "two", "three", "two"):
        run(write(tmp_path / "t.jsonl", user(words)))
    assert list(ledger.opened) == [SESSION, f"{SESSION}~2", f"{SESSION}~3"]
    assert ledger.opened[f"{SESSION}~3"]["resumed_from"] == f"{SESSION}~2"


def test_secrets_do_not_leave_the_host_unless_that_is_asked_for(ledger: Ledger, tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    path = write(tmp_path / "t.jsonl", user(f"use {secret}"), user([result(f"it was {secret}, done")]))
    run("--redact-also", "do.e", path)
    assert ledger.events[SESSION, 1000]["payload"]["text"] == "use [REDACTED]"
    assert ledger.events[SESSION, 2000]["payload"]["output"] == "it was [REDACTED], [REDACTED]"
    assert ledger.opened[SESSION]["task"]["title"] == "use [REDACTED]"
    assert numbers(run("--json", "--redact-also", "do.e", path))["duplicates"] == 3
    other = write(tmp_path / "u.jsonl", user(f"use {secret}", sessionId="other"))
    run("--no-redact", other)
    assert ledger.events["other", 1000]["payload"]["text"] == f"use {secret}"


def test_a_pattern_that_is_none_is_named(ledger: Ledger, tmp_path: Path) -> None:
    outcome = run("--redact-also", "(", write(tmp_path / "t.jsonl", user("x")))
    assert outcome.exit_code == 1
    assert "no regular expression" in outcome.stderr


def test_files_that_hold_no_session_are_passed_over(ledger: Ledger, tmp_path: Path) -> None:
    write(tmp_path / "history.jsonl", {"display": "hello"})
    write(tmp_path / "t.jsonl", user("go"))
    result = run(tmp_path)
    assert result.exit_code == 0
    assert "history.jsonl: no transcript of an agent that is looked for" in result.stderr
    assert "1 file, 1 session\n" in result.stdout


def test_a_path_that_is_not_there_is_a_usage_error(ledger: Ledger, tmp_path: Path) -> None:
    assert run(tmp_path / "nothing").exit_code == 2
    assert run().exit_code == 2
