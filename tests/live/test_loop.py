"""The loop runner as a process: killed, asked to end, beside another one, and with the server away."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from ledger.client.saddle import Saddle
from ledger.daemons.loop import handling
from ledger.daemons.loop.folders import LoopFolder
from ledger.events.content import content_digest
from ledger.events.model import Recorded
from ledger.events.times import parse_instant
from projections.fold import fold
from projections.loop import LOOPS
from projections.loop_state import Loops
from projections.loop_views import loop_view
from tests.live.serving import Server, acted, seen
from tests.live.shell import Shell

WAIT_S_MAX = 30.0
PASS = """echo '{"pass": true, "score": 1}'"""


class Project:
    """A folder with the loop "l", whose agents are scripts for sh that note their role in `called`."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.shell = Shell(folder, url)
        self.called = folder / "called"
        place = LoopFolder(folder, "l")
        handling.init(place, lambda: Saddle(url, "", outbox=place.outbox, drain=False))
        self.config = folder / ".ledgerd" / "loops" / "l" / "loop.json"
        (folder / "agent.sh").write_text('echo "$LEDGERD_LOOP_ROLE" >> called; . ./"$LEDGERD_LOOP_ROLE".sh\n')
        self.agent("implement", "true")
        self.agent("verify", PASS)
        self.configure(
            roles={role: {"prompt": f"{role}.md"} for role in ("implement", "verify")},
            harness={"command": ["sh", "agent.sh"]},
        )
        handling.set_task(place, lambda: Saddle(url, "", outbox=place.outbox, drain=False), "Do it.")

    def configure(self, **parts: Any) -> None:
        self.config.write_text(json.dumps(json.loads(self.config.read_text()) | parts))

    def agent(self, role: str, script: str) -> None:
        (self.folder / f"{role}.sh").write_text(script + "\n")

    def ledgerd(self, *words: str) -> str:
        done = self.shell.ledgerd(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run(self, *more: str) -> dict[str, Any]:
        """The summary of the last tick."""
        out = self.ledgerd("loop", "run", "--loop", "l", "--json", *more)
        return dict(json.loads(out.splitlines()[-1]))

    def start(self, *more: str) -> subprocess.Popen[bytes]:
        return self.shell.start("loop", "run", "--loop", "l", "--json", *more)

    def show(self) -> dict[str, Any]:
        return dict(json.loads(self.ledgerd("loop", "show", "l", "--json")))

    @property
    def calls(self) -> list[str]:
        return self.called.read_text().split()


@pytest.fixture
def away(tmp_path: Path) -> Project:
    """Without any server."""
    return Project(tmp_path, "http://127.0.0.1:9")


@pytest.fixture
def project(tmp_path: Path, server: Server) -> Project:
    return Project(tmp_path, server.url)


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S_MAX
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    """A process that only waits to be reaped does not run."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("role", ["implement", "verify"])
def test_a_runner_that_is_killed_leaves_no_agent_and_its_round_is_gone_on_with(away: Project, role: str) -> None:
    away.agent(role, "setsid sleep 60 & echo $! > child; echo $$ > pid.new; mv pid.new pid; exec sleep 60")
    runner = away.start()
    wait_for((away.folder / "pid").exists)
    runner.kill()
    runner.communicate()
    away.agent(role, PASS)
    summary = away.run()
    pids = [int((away.folder / name).read_text()) for name in ("pid", "child")]
    assert [pid for pid in pids if is_running(pid)] == []
    assert (summary["iter"], summary["verdict"]["pass"]) == (1, True)
    expected = ["implement", role, "verify"] if role == "implement" else ["implement", "verify", "verify"]
    assert away.calls == expected
    assert [one["outcome"] for one in away.show()["rounds"]] == ["passed"]


def test_a_daemon_that_is_asked_to_end_ends_its_agent_records_that_and_exits_well(away: Project) -> None:
    away.agent("implement", "echo $$ > pid.new; mv pid.new pid; exec sleep 60")
    daemon = away.start("--mode", "daemon", "--interval", "60")
    wait_for((away.folder / "pid").exists)
    daemon.send_signal(signal.SIGTERM)
    out, _ = daemon.communicate(timeout=WAIT_S_MAX)
    assert daemon.returncode == 0
    summary = json.loads(out.splitlines()[-1])
    assert (summary["skipped"], summary["reason"], summary["iter"]) == (True, "interrupted", 0)
    assert not is_running(int((away.folder / "pid").read_text()))
    assert away.show()["log"][-1] == "SKIP interrupted"


def test_of_two_runners_at_once_one_works_and_the_other_is_skipped(away: Project) -> None:
    away.agent("implement", "touch here; while [ ! -e go ]; do sleep 0.02; done")
    runner = away.start()
    wait_for((away.folder / "here").exists)
    assert away.run()["reason"] == "locked"
    (away.folder / "go").touch()
    out, _ = runner.communicate(timeout=WAIT_S_MAX)
    assert json.loads(out)["iter"] == 1
    assert away.calls == ["implement", "verify"]


def test_a_daemon_ticks_until_the_loop_is_halted(away: Project) -> None:
    away.agent("implement", "[ ! -e once ] || exit 1; touch once")
    out = away.ledgerd("loop", "run", "--mode", "daemon", "--loop", "l", "--interval", "0", "--json")
    reasons = [json.loads(line)["reason"] for line in out.splitlines()]
    assert reasons == [None, "implement_failed"]


def test_what_happened_while_the_server_was_away_shows_up_complete(
    away: Project, server: Server, reader: httpx.Client
) -> None:
    away.run()
    away.agent("verify", "echo no verdict")
    assert away.run()["reason"] == "verifier_failed"
    here = away.show()
    away.shell.environment["LEDGERD_URL"] = server.url
    away.ledgerd("outbox", "--outbox", str(away.folder / ".ledgerd" / "outbox.db"), "drain")
    task = seen(reader, f"/api/tasks/{here['task_id']}")
    assert (task["status"], task["title"]) == ("suspended", "Loop l")
    there = fold(LOOPS, Loops(), recorded(reader, here))
    assert loop_view(there.loops[here["task_id"]])["rounds"] == here["rounds"]
    assert loop_view(there.loops[here["task_id"]])["log"] == here["log"]


def recorded(reader: httpx.Client, loop: dict[str, Any]) -> list[Recorded]:
    """The server's events of the loop's two sessions, as a projection reads them there."""
    found = []
    for session_id in (loop["session_id"], f"{loop['session_id']}-agents"):
        page = seen(reader, f"/api/sessions/{session_id}/events", limit=5000)
        for one in page["events"]:
            payload = json.dumps(one["payload"]).encode()
            at = None if one["at"] is None else instant(one["at"])
            digest = content_digest(one["kind"], one["actor"], payload)
            root = f"task/{one['task_id']}"
            found.append(
                Recorded(
                    one["position"], 0, session_id, one["seq"], one["kind"], one["actor"], at,
                    instant(one["recorded_at"]), one["task_id"], root, payload, digest,
                )
            )  # fmt: skip
    return sorted(found, key=lambda event: event.position)


def instant(text: str) -> int:
    ns = parse_instant(text)
    assert ns is not None
    return ns


def test_the_owner_halts_and_resumes_a_loop_on_the_server(project: Project, owner: httpx.Client) -> None:
    project.run()
    task_id = project.show()["task_id"]
    wait_for(lambda: owner.get(f"/api/tasks/{task_id}").status_code == 200)
    acted(owner, seen(owner, f"/api/tasks/{task_id}"), "halt", reason="look at this")
    summary = project.run()
    assert (summary["reason"], summary["halted"], summary["iter"]) == ("halted:human_intervention", True, 1)
    assert "look at this" in project.show()["halt"]["detail"]
    wait_for(lambda: seen(owner, f"/api/tasks/{task_id}")["status"] == "suspended")
    acted(owner, seen(owner, f"/api/tasks/{task_id}"), "resume")
    assert project.run()["iter"] == 2
    assert project.run()["iter"] == 3
    assert project.show()["resumed_count"] == 1
