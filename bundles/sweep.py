"""The incident sweep under fire: loops' sessions on a server, a judge, and a sweep that is killed again and again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from bundles.rig.wire import segment
from bundles.runner import Scenario
from projections.sweep import AGENT

NAME = "sweep"
TITLE = "a sweep over loops' sessions is killed at random: each session is judged once, each incident filed once"
RESTARTS = False  # it kills by itself

DAMAGED, CLEAN = 4, 2
BUDGET = 2  # candidates a run: several runs are needed
KILLS = 3
BEFORE_KILL_S = (0.3, 1.2)  # sooner it has hardly read its own code
RUNS_MAX = 30
RUN_S_MAX = 60.0
POLL_S = 0.02

_PACKAGES = Path(__file__).resolve().parents[1]

# Files one incident for each candidate. It leaves its pid, and waits where it is told to.
_JUDGE = """\
import json, os, pathlib, sys, time
here = pathlib.Path(sys.argv[1])
prompt = sys.stdin.read()
(here / f"judge-{os.getpid()}").write_text("")
while (here / "hold").exists():
    time.sleep(0.01)
rows = [json.loads(line) for line in prompt.splitlines() if line.startswith('{"id": "C')]
incidents = [
    {"title": f"Damage in {row['session'].split()[-1]}", "severity": "HIGH", "what": "a", "cost": "b",
     "lesson": "c", "candidates": [row["id"]]}
    for row in rows
]
print(json.dumps({"incidents": incidents}))
"""


def run(scenario: Scenario) -> None:
    names = [f"damaged-{number}" for number in range(DAMAGED)]
    _work(scenario, names, [f"clean-{number}" for number in range(CLEAN)])
    sweeper = _Sweeper(scenario)
    _kill_at_the_judge(scenario, sweeper)
    for _ in range(KILLS):
        sweeper.start()
        time.sleep(scenario.random.uniform(*BEFORE_KILL_S))  # the random moment is the point
        sweeper.kill()
    _with_the_server_away(scenario, sweeper)
    runs = sweeper.until_quiet()
    scenario.check("the runs come to an end", runs < RUNS_MAX, f"{runs} runs after the kills")
    scenario.equal("no judge is left behind", sweeper.judges_alive(), [])
    _each_once(scenario, sweeper, names)
    later = "damaged-later"
    _work(scenario, [later], [])
    scenario.equal("what comes later is judged", sweeper.finish().returncode, 0)
    _each_once(scenario, sweeper, [*names, later])
    _runs_are_told(scenario)


def _work(scenario: Scenario, damaged: list[str], clean: list[str]) -> None:
    """Sessions as loops leave them."""
    saddle = scenario.saddle("loops")
    for name in [*damaged, *clean]:
        command = f"rm -rf /srv/{name}" if name in damaged else "make test"
        saddle.push(
            name,
            [
                _event(0, "message", "user", {"role": "user", "text": "Tidy up."}),
                _event(1, "tool_call", "model", {"tool": "Bash", "args": {"command": command}, "call_id": "c"}),
                _event(2, "tool_result", "harness", {"call_id": "c", "exit_code": 0, "output": "done"}),
            ],
            open={
                "task": {"id": f"loop-{name}", "title": f"Loop {name}"},
                "agent": "ledgerd-loop",
                "cwd": "/srv/app",
            },
        )


def _kill_at_the_judge(scenario: Scenario, sweeper: _Sweeper) -> None:
    """Killed while the judge thinks: the judge ends with it, and the next run asks again."""
    sweeper.hold.touch()
    sweeper.start()
    ends = time.monotonic() + RUN_S_MAX
    while not sweeper.judges() and time.monotonic() < ends:
        time.sleep(POLL_S)
    sweeper.kill()
    while sweeper.judges_alive() and time.monotonic() < ends:
        time.sleep(POLL_S)
    scenario.equal(
        "a judge ends with the sweep that is killed", (len(sweeper.judges()), sweeper.judges_alive()), (1, [])
    )
    sweeper.hold.unlink()


def _with_the_server_away(scenario: Scenario, sweeper: _Sweeper) -> None:
    scenario.server.kill()
    away = sweeper.finish()
    scenario.server.start()
    scenario.equal("without its server a run fails, and says so", away.returncode, 1)


def _each_once(scenario: Scenario, sweeper: _Sweeper, names: list[str]) -> None:
    headings = [
        line for line in (sweeper.register / "incidents.md").read_text().splitlines() if line.startswith("## ")
    ]
    seen = sorted(heading.split(" · ")[0] for heading in headings)
    scenario.equal(
        "each incident stands in the register once", seen, sorted(f"## Damage in {name}" for name in names)
    )
    events = _sweeps_events(scenario)
    filed = Counter(event["payload"]["title"] for event in events if event["kind"] == "incident.filed")
    scenario.equal("each was filed once in the ledger", filed, Counter(f"Damage in {name}" for name in names))
    for kind, keys in (("judge.verdict", _judged_by), ("session.judged", _recorded_by)):
        judged = Counter(key.partition(":")[0] for event in events if event["kind"] == kind for key in keys(event))
        scenario.equal(f"each session is in one {kind}", judged, Counter(names))
    times = Counter(event["payload"]["key"] for event in events if event["kind"] == "session.clean")
    twice = [key for key, count in times.items() if count > 1]
    scenario.equal("each clean session was recorded once", (len(times), twice), (CLEAN, []))


def _runs_are_told(scenario: Scenario) -> None:
    """On the server every run has an end, the killed ones too, and the sweep never looked at itself."""
    working = [
        task["id"] for task in _tasks(scenario) if task["id"].startswith("sweep-") and task["status"] == "working"
    ]
    scenario.equal("no run is left as working", working, [])
    own = [event for event in _sweeps_events(scenario) if str(event["payload"].get("key", "")).startswith("sweep-")]
    scenario.equal("the sweep left its own sessions out", own, [])


def _judged_by(event: dict[str, Any]) -> list[str]:
    return [key for _, key in event["payload"]["plan"]["judged"]]


def _recorded_by(event: dict[str, Any]) -> list[str]:
    return [key for _, key in event["payload"]["keys"]]


def _tasks(scenario: Scenario) -> list[dict[str, Any]]:
    return list(scenario.read("/api/tasks?limit=200")["items"])


def _sweeps_events(scenario: Scenario) -> list[dict[str, Any]]:
    """All that the runs have told the server."""
    events: list[dict[str, Any]] = []
    for task in _tasks(scenario):
        if task["id"].startswith("sweep-"):
            for session in scenario.read(f"/api/tasks/{segment(task['id'])}")["sessions"]:
                assert session["agent"] == AGENT  # noqa: S101 — as tasks of that name are the sweep's
                path = f"/api/sessions/{segment(session['session_id'])}/events?limit=1000"
                events += scenario.read(path)["events"]
    return events


def _event(seq: int, kind: str, actor: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {"seq": seq, "kind": kind, "actor": actor, "payload": payload}


class _Sweeper:
    """`ledgerd sweep run`, over any number of starts, with a register and a state of its own."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._folder = scenario.folder
        self.register = scenario.folder / "register"
        self.hold = scenario.folder / "hold"
        judge = scenario.folder / "judge.py"
        judge.write_text(_JUDGE)
        command = json.dumps([sys.executable, "-I", "-S", str(judge), str(scenario.folder)])
        self._config = scenario.folder / "sweep.toml"
        self._config.write_text(
            '[[source]]\ntype = "ledger"\n'
            f'[scan]\nfirst_run = "backfill"\nmax_candidates = {BUDGET}\n'
            f'[judge]\nbackend = "command"\ncommand = {command}\n'
            '[ledger]\ndir = "register"\n[state]\nfile = "sweep.db"\nseen_list = "seen.txt"\n'
        )
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LEDGERD_")}
        path = os.pathsep.join(filter(None, [str(_PACKAGES), kept.get("PYTHONPATH")]))
        tokens = {
            "LEDGERD_TOKEN": scenario.token("saddle", "sweep"),
            "LEDGERD_READER_TOKEN": scenario.token("reader", "sweep"),
        }
        self._environment = {**kept, **tokens, "PYTHONPATH": path}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        words = [sys.executable, "-m", "ledger.cli", "sweep", "-c", str(self._config), "run", "--json"]
        self._process = subprocess.Popen(
            words,
            env={**self._environment, "LEDGERD_URL": self._scenario.server.url},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self._folder,
        )

    def kill(self) -> None:
        assert self._process is not None  # noqa: S101 — it was started
        self._process.kill()
        self._process.communicate()

    def finish(self) -> subprocess.CompletedProcess[bytes]:
        """Starts it and lets it come to its end."""
        self.start()
        process = self._process
        assert process is not None  # noqa: S101 — it was started
        try:
            stdout, stderr = process.communicate(timeout=RUN_S_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)

    def until_quiet(self) -> int:
        """Runs until there is nothing left to judge; how often."""
        for number in range(1, RUNS_MAX):
            done = self.finish()
            if done.returncode != 0:
                raise AssertionError(f"a run ended with {done.returncode}: {done.stderr.decode(errors='replace')}")
            said = json.loads(done.stdout)
            if said["status"] == "quiet":
                return number
        return RUNS_MAX

    def judges(self) -> list[int]:
        """The pids of all judges that were ever asked."""
        return [int(path.name.removeprefix("judge-")) for path in self._folder.glob("judge-*")]

    def judges_alive(self) -> list[int]:
        return [pid for pid in self.judges() if _is_judge(pid)]


def _is_judge(pid: int) -> bool:
    try:
        return b"judge.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
