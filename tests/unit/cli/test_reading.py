"""goals, goal, tasks, task and token, over answers of the API."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click
import httpx
import pytest
from click.testing import Result

Run = Callable[..., Result]
Serve = Callable[[dict[str, Any]], list[httpx.Request]]

HOSTILE = "bad\x1b[2J\x1b]0;t\x07 \u202e text"


def row(kind: str, text: str, copies: int = 1) -> dict[str, Any]:
    return {"kind": kind, "text": text, "at": "2026-02-03T04:05:06.789Z", "copies": copies}


USAGE = {
    "input_tokens": 12345,
    "output_tokens": 67,
    "cache_read_tokens": 0,
    "cache_write_tokens": 0,
    "cost_usd": 1.5,
}
GOAL: dict[str, Any] = {
    "id": "7",
    "project_id": "3",
    "title": "Port the parser",
    "branch_name": "parser",
    "status": "failed",
    "current_command": "make test",
    "current_since": "2026-02-03T04:05:06Z",
    "run_task_id": "12",
    "summary": "the tests never ran",
    "tasks": [{"id": "12", "kind": "goal_run", "title": HOSTILE, "status": "failed", "attempt": 2, "summary": None}],
    "events": [row("goal-created", "Port the parser"), row("comment", HOSTILE), row("goal-failed", "no tests", 115)],
    "older": None,
    "usage": USAGE,
    "integrity": {"deliveries": 9, "duplicates": 4, "conflicts": 0, "missing": 0, "skew": None},
    "blocks": [{"reason": "the key is missing", "at": "2026-02-03T04:05:06Z", "actor": "ann"}],
    "actions": {"reopen": {"method": "POST", "href": "/api/goals/7/reopen"}},
}
DID = {"messages": 4, "tool_calls": 0, "failed_calls": 1, "first_prompt": HOSTILE, "last_words": "All\ndone."}
TASK: dict[str, Any] = GOAL | {
    "id": "12",
    "goal_id": "7",
    "sessions": [
        {"session_id": "s-1", "attempt": 1, "state": "failed", "saddle": "alpha", "agent": None} | DID,
        {"session_id": HOSTILE, "attempt": 2, "state": "working", "saddle": "alpha", "agent": "claude"} | DID,
    ],
}
ITEM = {
    "id": "7",
    "goal_id": "7",
    "status": "failed",
    "updated_at": "2026-02-03T04:05:06Z",
    "title": HOSTILE,
    "summary": "two\nlines",
}


@pytest.mark.parametrize(("what", "thing"), [("goal", GOAL), ("task", TASK)])
def test_a_goal_or_a_task_is_told_once_in_order(run: Run, requests: Serve, what: str, thing: dict[str, Any]) -> None:
    requests({f"GET /api/{what}s/{thing['id']}": thing})
    result = run(what, thing["id"])
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0] == f"{what} {thing['id']}  failed"
    assert "2026-02-03 04:05:06\tgoal-failed\tno tests × 115" in lines
    assert lines.index("2026-02-03 04:05:06\tgoal-created\tPort the parser") < lines.index(
        "2026-02-03 04:05:06\tcomment\tbad ‹U+202E› text"
    )
    for said in ("12,345 in", "$1.50", "9 deliveries, 4 duplicates", "open to it: reopen", "the key is missing"):
        assert said in result.output


def test_a_task_says_what_each_session_did(run: Run, requests: Serve) -> None:
    requests({"GET /api/tasks/12": TASK})
    lines = run("task", "12").output.splitlines()
    assert any(line.endswith("s-1\t4 messages, 1 failed calls") for line in lines)
    assert "s-1, last words: All done." in lines


@pytest.mark.parametrize("columns", [30, 60, 120])
@pytest.mark.parametrize(("what", "thing"), [("goal", GOAL), ("task", TASK)])
def test_on_a_terminal_of_any_width_what_agents_wrote_controls_nothing(
    run: Run, requests: Serve, on_a_terminal: Callable[[int], None], what: str, thing: dict[str, Any], columns: int
) -> None:
    requests({f"GET /api/{what}s/{thing['id']}": thing})
    on_a_terminal(columns)
    result = run(what, thing["id"], color=True)
    assert result.exit_code == 0, result.output
    assert "\x1b[1;31m" in result.output, "a failure is in colour"
    for sequence in ("\x1b[2J", "\x1b]0;", "\u202e"):
        assert sequence not in result.output
    visible = [click.unstyle(line) for line in result.output.splitlines()]
    assert max(map(len, visible)) <= columns


@pytest.mark.parametrize("what", ["goals", "tasks"])
def test_a_list_in_a_pipe_is_one_line_a_row_with_tabs(run: Run, requests: Serve, what: str) -> None:
    seen = requests({f"GET /api/{what}": {"items": [ITEM, ITEM], "next": "c9"}})
    result = run(what, "--status", "failed", "--project", "3", "--limit", "2")
    assert dict(seen[0].url.params) == {"status": "failed", "project_id": "3", "limit": "2"}
    first, second = result.stdout.splitlines()
    assert first == second
    assert first.split("\t")[-4:] == ["failed", "2026-02-03 04:05:06", "bad ‹U+202E› text", "two lines"]
    assert f"ledgerd {what} --after c9" in result.stderr


@pytest.mark.parametrize(
    ("words", "path", "answer"),
    [
        (["goal", "7"], "/api/goals/7", GOAL),
        (["task", "12"], "/api/tasks/12", TASK),
        (["goals"], "/api/goals", {"items": [ITEM], "next": None}),
        (["tasks"], "/api/tasks", {"items": [ITEM], "next": None}),
        (["token", "list"], "/api/tokens", {"items": []}),
    ],
)
def test_json_is_the_answer_of_the_api(
    run: Run, requests: Serve, words: list[str], path: str, answer: dict[str, Any]
) -> None:
    requests({f"GET {path}": answer})
    result = run(*words, "--json")
    assert json.loads(result.output) == answer
    assert "\x1b" not in result.output


def test_an_unknown_goal_exits_with_1_and_the_servers_words(run: Run, requests: Serve) -> None:
    problem = {"status": 404, "code": "not_found", "detail": "there is no goal 9", "hint": "See `ledgerd goals`."}
    requests({"GET /api/goals/9": httpx.Response(404, json=problem)})
    result = run("goal", "9")
    assert result.exit_code == 1
    assert result.stderr == "error: there is no goal 9\nhint: See `ledgerd goals`.\n"


def test_a_new_token_stands_alone_on_standard_output(run: Run, requests: Serve) -> None:
    seen = requests({"POST /api/tokens": httpx.Response(201, json={"id": "3", "token": "t0k"})})
    result = run("token", "create", "--role", "saddle", "--name", "build-1")
    assert result.stdout == "t0k\n"
    assert json.loads(seen[0].content) == {"role": "saddle", "name": "build-1"}


def test_tokens_are_listed_with_their_end(run: Run, requests: Serve) -> None:
    token = {"id": "3", "role": "reader", "name": "ann", "created_at": "2026-02-03T04:05:06Z", "expires_at": None}
    revoked = token | {"id": "4", "revoked_at": "2026-02-04T00:00:00Z"}
    requests({"GET /api/tokens": {"items": [token, revoked]}})
    assert run("token", "list").output.splitlines() == [
        "3\treader\t2026-02-03 04:05:06\t\tann",
        "4\treader\t2026-02-03 04:05:06\trevoked 2026-02-04 00:00:00\tann",
    ]


def test_a_token_is_revoked(run: Run, requests: Serve) -> None:
    seen = requests({"DELETE /api/tokens/3": httpx.Response(204)})
    assert run("token", "revoke", "3").exit_code == 0
    assert [request.method for request in seen] == ["DELETE"]


def test_the_server_and_the_token_come_from_the_settings(
    run: Run, requests: Serve, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = requests({"GET /api/goals": {"items": [], "next": None}})
    (tmp_path / "ledgerd.toml").write_text('url = "http://ledger.test"\ntoken = "from-file"\n')
    run("goals")
    monkeypatch.setenv("LEDGERD_TOKEN", "from-environment")
    run("goals")
    assert [request.url.host for request in seen] == ["ledger.test", "ledger.test"]
    assert [request.headers["authorization"] for request in seen] == ["Bearer from-file", "Bearer from-environment"]
