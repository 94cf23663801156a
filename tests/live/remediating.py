"""A host with projects whose agents do what a script says, and runners on it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec

from bundles.rig.scripted_agent import Script
from ledger.cli.remediation import publish, running
from ledger.client.api import Api
from ledger.daemons.agent import Stop
from ledger.daemons.remediation.machine import MOVED
from ledger.daemons.remediation.runner import Runner
from ledger.daemons.remediation.settings import RemediationSettings
from tests.live.serving import Server

PROJECTS = ("alpha", "beta", "platform", "tool")


class Host:
    """Projects `alpha`, `beta`, `platform` (the master's) and `tool`, each with a script of its name; the master's is
    `master`. `state` is the runners' folder."""

    def __init__(self, folder: Path, server: Server, state: Path) -> None:
        self.folder = folder
        self.server = server
        self.state = state
        self.client: httpx.Client = server.client()
        self.scripts = {name: Script(folder, name) for name in (*PROJECTS, "master")}
        for name in PROJECTS:
            (folder / name).mkdir()

    def settings(self, projects: Sequence[str] = PROJECTS, **changes: Any) -> dict[str, Any]:
        return {
            "master": "platform",
            "reviewer": self.scripts["master"].words,
            "tool_project": "tool",
            "lease_s": 30.0,
            "state_dir": str(self.state),
            "projects": {name: self._project(name) for name in projects},
        } | changes

    def script(self, **actions: Sequence[dict[str, Any] | str]) -> None:
        for name, of_one in actions.items():
            self.scripts[name].add(*of_one)

    def prompts(self, name: str) -> list[str]:
        return self.scripts[name].prompts()

    def start(self, *steps: dict[str, Any]) -> None:
        answer = self.client.post("/api/resource-remediation/start", json={"steps": steps or [step(1)]})
        assert answer.status_code == 201, answer.text

    @contextmanager
    def runner(self, stop: Stop | None = None, **settings: Any) -> Iterator[Runner]:
        """A runner in this process. Its configuration is published, and a run that was active is over."""
        wanted = msgspec.convert(self.settings(**settings), RemediationSettings)
        server = (self.server.url, self.server.owner_token)
        with Api(*server) as api, running(wanted, server, stop or Stop()) as runner:
            publish(api, wanted)
            yield runner

    def owner(self, decision: str, **body: Any) -> None:
        answer = self.client.post(f"/api/resource-remediation/{decision}", json=body)
        assert answer.status_code == 200, answer.text

    def run(self) -> dict[str, Any]:
        answer = self.client.get("/api/resource-remediation")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def kinds(self) -> list[str]:
        return [event["kind"] for event in self.run()["events"]]

    def task(self) -> dict[str, Any]:
        return dict(self.client.get(f"/api/tasks/{self.run()['task_id']}").json())

    def close(self) -> None:
        """What is active still would stand in the way of the next test."""
        run = self.run()
        if run.get("active"):
            assert self.client.post(f"/api/tasks/{run['task_id']}/cancel", json={}).status_code == 200

    def write_settings(self, **settings: Any) -> None:
        """A `ledgerd.toml` that names the projects."""
        wanted = self.settings(**settings)
        projects = wanted.pop("projects")
        given = {key: value for key, value in wanted.items() if value is not None}
        lines = ["[remediation]", *(f"{key} = {json.dumps(value)}" for key, value in given.items())]
        for name, of_one in projects.items():
            lines += [f"[remediation.projects.{name}]", *(f"{key} = {json.dumps(v)}" for key, v in of_one.items())]
        (self.folder / "ledgerd.toml").write_text("\n".join(lines))

    def _project(self, name: str) -> dict[str, Any]:
        return {"path": str(self.folder / name), "agent": self.scripts[name].words, "aliases": [f"{name} side"]}


def drive(runner: Runner) -> list[str]:
    """Ticks until one moves nothing; what the ticks came to."""
    results = [runner.tick()]
    while results[-1] in MOVED:
        results.append(runner.tick())
    return results


def step(number: int, target: str = "alpha", **changes: Any) -> dict[str, Any]:
    return {
        "id": f"s{number}",
        "order": number,
        "target": target,
        "title": f"Step {number}",
        "risk": "code",
        "prompt": f"Do the work of step {number}.",
    } | changes


def repository(folder: Path) -> None:
    git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "begun")


def commits(folder: Path) -> list[str]:
    return git(folder, "log", "--reverse", "--format=%s").splitlines()


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout
