"""Hooks end to end: what an agent's hooks say reaches the server with no other process of ours about."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ledger.hooks.spool import carrier_path
from tests.live.serving import REQUEST_S_MAX, ROOT, Server, event, events_of, fresh, push, seen, token_of

ENTRY = [sys.executable, "-c", "from ledger.entry import main; main()"]


class Agent:
    """An agent that calls its hooks."""

    def __init__(self, folder: Path, server: Server, saddle: httpx.Client) -> None:
        self.id = fresh("vendor")
        self.outbox = folder / "outbox.db"
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("LEDGERD_")},
            "PYTHONPATH": str(ROOT),
            "LEDGERD_URL": server.url,
            "LEDGERD_TOKEN": token_of(saddle),
            "LEDGERD_OUTBOX": str(self.outbox),
        }

    def hook(self, name: str, *, within: str = "", **fields: Any) -> None:
        body = {"session_id": self.id, "cwd": "/srv/app", "hook_event_name": name, **fields}
        done = subprocess.run(
            [*ENTRY, "hook", "claude-code"],
            input=json.dumps(body).encode(),
            env={**self._environment, "LEDGERD_SESSION": within},
            capture_output=True,
            timeout=30,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")

    def carrier(self) -> int:
        return int(Path(carrier_path(str(self.outbox))).read_text() or 0)

    def end_carrier(self) -> None:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if pid := self.carrier():
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def agent(tmp_path: Path, server: Server, saddle: httpx.Client) -> Iterator[Agent]:
    agent = Agent(tmp_path, server, saddle)
    yield agent
    agent.end_carrier()


def wait_until_told(reader: httpx.Client, session_id: str, kind: str) -> None:
    """Returns once an event of this kind of the session is on the server."""
    deadline = time.monotonic() + REQUEST_S_MAX
    while time.monotonic() < deadline:
        answer = reader.get(f"/api/sessions/{session_id}")
        if answer.status_code == 200 and any(one["kind"] == kind for one in events_of(reader, session_id)):
            return
        time.sleep(0.05)
    raise AssertionError(f"{session_id} has told no {kind}")


def question(call_id: str = "toolu_9") -> dict[str, Any]:
    given = {"questions": [{"question": "Which one?"}]}
    return {"tool_name": "AskUserQuestion", "tool_input": given, "tool_use_id": call_id}


def test_with_hooks_alone_the_run_is_told(agent: Agent, reader: httpx.Client) -> None:
    agent.hook("SessionStart", source="startup", model="opus")
    agent.hook("UserPromptSubmit", prompt="Fix the parser")
    agent.hook("PreToolUse", tool_name="Bash", tool_input={"command": "make test"}, tool_use_id="toolu_1")
    agent.hook("Stop", last_assistant_message="Shall I push?")
    wait_until_told(reader, f"{agent.id}.hook", "waiting")
    task = seen(reader, f"/api/tasks/cc-{agent.id}")
    assert (task["title"], task["status"], task["current_command"]) == ("Fix the parser", "waiting", "make test")
    assert [row["text"] for row in task["events"] if row["kind"] == "waiting"] == ["Shall I push?"]
    session = seen(reader, f"/api/sessions/{agent.id}.hook")
    assert (session["model"], session["same_run_as"], session["agent"]) == ("opus", agent.id, "claude-code")


def test_a_carrier_that_was_killed_is_followed_by_another_and_nothing_is_told_twice(
    agent: Agent, reader: httpx.Client
) -> None:
    agent.hook("UserPromptSubmit", prompt="Fix the parser")
    wait_until_told(reader, f"{agent.id}.hook", "message")
    first = agent.carrier()
    agent.end_carrier()
    agent.hook("Stop", last_assistant_message="Done.")
    wait_until_told(reader, f"{agent.id}.hook", "waiting")
    assert agent.carrier() != first
    told = [one["kind"] for one in events_of(reader, f"{agent.id}.hook")]
    assert told == ["message", "result", "waiting"]


def test_a_question_that_hook_and_watcher_tell_is_shown_once(
    agent: Agent, reader: httpx.Client, saddle: httpx.Client
) -> None:
    agent.hook("UserPromptSubmit", prompt="Choose")
    agent.hook("PreToolUse", **question())
    wait_until_told(reader, f"{agent.id}.hook", "waiting")
    task_id = f"cc-{agent.id}"
    said = [
        event(3000, "tool_call", {"tool": "AskUserQuestion", "args": {}, "call_id": "toolu_9"}),
        event(3001, "waiting", {"question": "Which one?", "call_id": "toolu_9"}),
    ]
    push(saddle, agent.id, said, open={"task": {"id": task_id}})
    task = seen(reader, f"/api/tasks/{task_id}")
    assert task["status"] == "waiting"
    rows = [row for row in task["events"] if row["kind"] == "waiting"]
    assert [(row["text"], row["copies"]) for row in rows] == [("Which one?", 2)]


def test_inside_a_run_the_hook_tells_of_the_same_task(
    agent: Agent, reader: httpx.Client, saddle: httpx.Client, tmp_path: Path
) -> None:
    from ledger.client.outbox import Outbox

    run = fresh("run")
    outbox = Outbox(agent.outbox)
    outbox.open_session(run, {"task": {"title": "Run by hand"}})
    outbox.close()
    agent.hook("UserPromptSubmit", prompt="Fix it", within=run)
    agent.hook("Stop", last_assistant_message="Done?", within=run)
    wait_until_told(reader, f"{agent.id}.hook", "waiting")
    session = seen(reader, f"/api/sessions/{agent.id}.hook")
    task = seen(reader, f"/api/tasks/{session['task_id']}")
    assert (task["title"], task["status"]) == ("Run by hand", "waiting")
    assert {one["session_id"] for one in task["sessions"]} == {run, f"{agent.id}.hook"}


def test_a_session_names_a_task_or_one_that_has_one(saddle: httpx.Client, other_saddle: httpx.Client) -> None:
    first = saddle.post("/api/saddle/sessions", json={"session_id": fresh("s"), "task": {"title": "T"}}).json()
    for field in ("same_run_as", "parent_session_id"):
        body = {"session_id": fresh("s"), field: first["session_id"]}
        answer = saddle.post("/api/saddle/sessions", json=body)
        assert (answer.status_code, answer.json()["task_id"]) == (201, first["task_id"])
        refused = other_saddle.post("/api/saddle/sessions", json={**body, "session_id": fresh("s")})
        assert refused.status_code == 422
