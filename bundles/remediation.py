"""A plan through three repositories under fire: the server goes and comes, the runner is killed, answers are lost.

The runner reaches the server over a link that loses answers, and that stays where it is when the server moves.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bundles.rig.proxy import Link
from bundles.rig.scripted_agent import Script, self_repair, supervision
from bundles.rig.wire import segment
from bundles.runner import Scenario

NAME = "remediation"
TITLE = "a plan goes through three repositories while server and runner end: every commit is made once"
RESTARTS = True

PROJECTS = ("api", "web", "infra")
LEASE_S = 1.0
TURN_S = 60.0
POLL_S = 0.02
ASK_S = 0.1  # between two looks at the whole run, each of which costs the server something
WAIT_S_MAX = 60.0
STOP_S_MAX = 15.0

LOSING = Link(cut_share=0.02)

_PACKAGES = Path(__file__).resolve().parents[1]
_ROUTE = "/api/resource-remediation"


def run(scenario: Scenario) -> None:
    host = _Host(scenario)
    try:
        host.start()
        host.wait_for_agent("api")
        scenario.restart()  # while an agent is at work
        host.let("api")
        host.wait_for_agent("web")
        host.kill()  # the agent has made its commit, and has not said so
        host.start()
        host.wait_until("the owner is needed", lambda seen: (seen["self_repair"] or {}).get("status") == "NEEDS_USER")
        scenario.restart()  # while the run waits
        _owner_approves(scenario)
        host.wait_until("it is completed", lambda seen: seen["status"] == "COMPLETED")
        scenario.equal("the runner ends when it is asked to", host.stop(), 0)
    finally:
        host.kill()
    scenario.check("answers were lost on the way to the runner", host.cuts > 0, host.cuts)
    _judge(scenario, host)


def _owner_approves(scenario: Scenario) -> None:
    task = scenario.read("/api/tasks?status=suspended")["items"]
    scenario.equal("the run shows as a task that waits", len(task), 1)
    waiting = scenario.owner.get(_ROUTE).json
    scenario.equal("the step that needs the owner is not done", waiting["steps"][2]["status"], "BLOCKED")
    second = scenario.owner.post(f"{_ROUTE}/start", {"steps": _plan()})
    scenario.equal("a blocked run stands in the way of another", second.status, 409)
    answer = scenario.owner.post(f"{_ROUTE}/approve", {"feedback": "Deploy it."})
    scenario.equal("the owner approves", answer.status, 200)


def _judge(scenario: Scenario, host: _Host) -> None:
    seen = scenario.owner.get(_ROUTE).json
    scenario.equal("the steps are approved", [one["status"] for one in seen["steps"]], ["APPROVED"] * 3)
    scenario.equal("so often agents were sent", [one["attempts"] for one in seen["steps"]], [2, 2, 2])
    for name in PROJECTS:
        said = host.commits(name)
        scenario.equal(f"each commit of {name} was made once", said, ["begun", *COMMITS[name]])
        scenario.equal(f"the agent of {name} was called twice", len(host.scripts[name].prompts()), 2)
    prompts = host.scripts["master"].prompts()
    scenario.equal("each review took place once", len(prompts), len(MASTER))
    addendum = "The commit is there; report it." in host.scripts["web"].prompts()[1]
    scenario.check("the agent goes on with what the repair has added", addendum)
    kinds = [event["kind"] for event in seen["events"]]
    scenario.equal("two repairs took place", kinds.count("self_repair.started"), 2)
    moves = [event["payload"]["queue_id"] for event in seen["events"] if event["kind"] == "supervision.verdict"]
    scenario.equal("no reply moved the run twice", len(moves), len(set(moves)))
    task = scenario.read(f"/api/tasks/{segment(seen['task_id'])}")
    scenario.equal("the run's task is done", (task["status"], task["summary"]), ("done", "3 steps approved"))
    conflicts = [one["session_id"] for one in task["sessions"] if _conflicts(scenario, one["session_id"])]
    scenario.equal("no conversation has a conflict", conflicts, [])


def _conflicts(scenario: Scenario, session_id: str) -> list[Any]:
    found: list[Any] = scenario.read(f"/api/sessions/{segment(session_id)}")["conflicts"]
    return found


class _Host:
    """The projects, the scripts of their agents, and the runner over any number of starts."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._folder = scenario.folder / "host"
        self._folder.mkdir()
        self.scripts = {name: Script(self._folder, name) for name in (*PROJECTS, "tool", "master")}
        for name in (*PROJECTS, "tool", "master"):
            (self._folder / name).mkdir()
        for name in PROJECTS:
            self._git(name, "init", "--quiet", "--initial-branch", "main")
            self._git(name, "commit", "--quiet", "--allow-empty", "--message", "begun")
        self.scripts["master"].add(*MASTER)
        self.scripts["tool"].add(*TOOL)
        for name, actions in AGENTS.items():
            self.scripts[name].add(*actions)
        (self._folder / "ledgerd.toml").write_text(self._settings())
        (self._folder / "plan.json").write_text(json.dumps({"steps": _plan()}))
        self._link = scenario.link(LOSING)
        self._environment = _environment(LEDGERD_URL=self._link.url, LEDGERD_TOKEN=scenario.server.owner_token)
        self._process: subprocess.Popen[bytes] | None = None
        self._started = False

    @property
    def cuts(self) -> int:
        return self._link.cuts

    def start(self) -> None:
        if not self._started:
            self._started = True
            direct = self._environment | {"LEDGERD_URL": self._scenario.server.url}
            begun = subprocess.run(
                self._words("start", "plan.json"), cwd=self._folder, env=direct, capture_output=True, check=False
            )
            self._scenario.equal("the run is started", (begun.returncode, begun.stderr), (0, b""))
        words = self._words("daemon", "--poll", "0.1")
        with (self._folder / "runner.log").open("ab") as log:
            self._process = subprocess.Popen(words, cwd=self._folder, env=self._environment, stdout=log, stderr=log)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> int:
        process, self._process = self._process, None
        assert process is not None  # noqa: S101 — it was started
        process.send_signal(signal.SIGTERM)
        try:
            return process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def wait_for_agent(self, name: str) -> None:
        """Until the agent has come to the place where it waits."""
        self._wait(f"the agent of {name} comes to its place", (self._folder / f"{name}.here").exists)

    def let(self, name: str) -> None:
        (self._folder / f"{name}.go").touch()

    def wait_until(self, what: str, holds: Callable[[dict[str, Any]], bool]) -> None:
        self._wait(what, lambda: holds(self._scenario.owner.get(_ROUTE).json), ASK_S)

    def commits(self, name: str) -> list[str]:
        return self._git(name, "log", "--reverse", "--format=%s").splitlines()

    def _wait(self, what: str, holds: Callable[[], bool], poll_s: float = POLL_S) -> None:
        ends = time.monotonic() + WAIT_S_MAX
        while not holds():
            if time.monotonic() > ends:
                log = (self._folder / "runner.log").read_text(errors="replace")
                raise AssertionError(f"{what}: not within {WAIT_S_MAX:.0f} s; the runner said {log[-500:]!r}")
            time.sleep(poll_s)

    def _settings(self) -> str:
        top = {
            "master": "master",
            "tool_project": "tool",
            "lease_s": LEASE_S,
            "turn_s": TURN_S,
            "state_dir": str(self._folder / "state"),
        }
        lines = ["[remediation]", *(f"{key} = {json.dumps(value)}" for key, value in top.items())]
        for name, script in self.scripts.items():
            lines += [f"[remediation.projects.{name}]", f"path = {json.dumps(str(self._folder / name))}"]
            lines.append(f"agent = {json.dumps(script.words)}")
        return "\n".join(lines)

    def _words(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "ledger.cli", "remediate", *words]

    def _git(self, name: str, *words: str) -> str:
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        command = ["git", *who, *words]
        done = subprocess.run(command, cwd=self._folder / name, capture_output=True, text=True, check=True)
        return done.stdout


def _environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LEDGERD_")}
    path = os.pathsep.join(filter(None, [str(_PACKAGES), kept.get("PYTHONPATH")]))
    return {**kept, **more, "PYTHONPATH": path}


def _plan() -> list[dict[str, Any]]:
    risks = {"api": "code", "web": "code", "infra": "production"}
    return [
        {
            "id": name,
            "order": number,
            "target": name.upper(),
            "title": f"Move {name} to the new lock",
            "risk": risks[name],
            "prompt": f"Move {name} to the new lock, and commit it.",
        }
        for number, name in enumerate(PROJECTS, 1)
    ]


APPROVE = supervision("approve", "done and checked")
MASTER = (
    APPROVE,  # the plan
    supervision("correct", "- there is no test"),
    APPROVE,  # api
    APPROVE,  # web
    supervision("block", "it must be deployed, which only the owner may approve"),
    APPROVE,  # infra
    "All three use the new lock.",
)
TOOL = (
    self_repair("fixed", "the runner had been killed", "The commit is there; report it."),
    self_repair("needs_user", "the owner must approve the deploy"),
)
COMMITS = {
    "api": ["api: new lock", "api: test"],
    "web": ["web: new lock"],
    "infra": ["infra: new lock", "infra: deployed"],
}
AGENTS: dict[str, list[dict[str, Any] | str]] = {
    "api": [
        {"write": {"lock": "new"}, "commit": "api: new lock", "say": "Moved.", "until": "api.go"},
        {"write": {"test": "yes"}, "commit": "api: test", "say": "With a test."},
    ],
    "web": [{"write": {"lock": "new"}, "commit": "web: new lock", "until": "never"}, "It is committed."],
    "infra": [
        {"write": {"lock": "new"}, "commit": "infra: new lock", "say": "It has to be deployed."},
        {"write": {"deployed": "yes"}, "commit": "infra: deployed", "say": "Deployed."},
    ],
}
