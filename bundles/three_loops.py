"""Three loops beside each other in one project, on one outbox: one passes, one gains nothing, one leaves its scope.

Each runs in daemon mode, on a schedule of its own.
"""

from __future__ import annotations

import subprocess
from typing import Any

from bundles import checks
from bundles.rig import looping
from bundles.rig.looping import Loop, Project
from bundles.runner import Scenario
from ledger.events.content import payload_object

NAME = "three_loops"
TITLE = "three loops in one project: one passes, one gains nothing, one leaves its scope, and none disturbs another"
RESTARTS = False

FAILS = {"pass": False, "score": 0.5, "reasons": ["Not yet."]}
RISES = [{"pass": n == 2, "score": n / 2, "reasons": []} for n in range(3)]  # passes in its third round
WINDOW = 2  # of scores without a gain
ATTEMPTS = 5  # at most


def run(scenario: Scenario) -> None:
    token = scenario.token("saddle", "loops")
    project = scenario.held(Project(scenario.folder / "project", lambda: scenario.server.url, token))
    _make_repository(project)
    loops = [
        Loop(
            project,
            "passes",
            verdicts=RISES,
            writes={"src/parser.py": "# parser"},
            brakes={"stop_on_pass": True},
            blast_radius={"file_scope": ["src/**"], "use_worktree": True},
        ),
        Loop(project, "plateau", verdicts=[FAILS], brakes={"score_plateau_window": WINDOW}),
        Loop(
            project,
            "strays",
            verdicts=RISES,
            writes={"src/lexer.py": "# lexer", "Makefile": "# make"},
            blast_radius={"file_scope": ["src/**"], "use_worktree": True},
        ),
    ]
    attempts = ["--mode", "daemon", "--max-iterations", str(ATTEMPTS), "--interval"]
    runners = [loop.start(*attempts, pause) for loop, pause in zip(loops, ("0", "0.05", "0.1"), strict=True)]
    try:
        passes, plateau, strays = (looping.summary_of(runner) for runner in runners)
    finally:
        for runner in runners:
            looping.kill(runner)
        for loop in loops:
            loop.end_all()
    _stands(scenario, "passes", passes, iter=3, halted=False, reason="passed")
    _stands(scenario, "plateau", plateau, iter=WINDOW, halted=False, reason="score_plateau")
    _stands(scenario, "strays", strays, iter=0, halted=True, reason="scope_violation")
    project.drain()
    for loop in loops:
        _is_told_apart(scenario, loop)
    _names_what_strayed(scenario, project, loops[-1])


def _make_repository(project: Project) -> None:
    (project.folder / "README").write_text("A project.\n")
    who = ["-c", "user.name=Rig", "-c", "user.email=rig@example.org", "-c", "commit.gpgsign=false"]
    for words in (["init", "--quiet"], ["add", "README"], ["commit", "--quiet", "--message", "A project"]):
        subprocess.run(["git", *who, *words], cwd=project.folder, check=True)  # noqa: S607 — whichever git there is


def _stands(scenario: Scenario, name: str, summary: dict[str, Any], **expected: Any) -> None:
    seen = {field: summary[field] for field in expected}
    scenario.equal(f"{name}: the last tick says how the loop stands", seen, expected)


def _is_told_apart(scenario: Scenario, loop: Loop) -> None:
    """What the loop told the server is its own, and only that."""
    kept = [event for event in loop.journal() if event.seq >= 0]
    here = [(event.seq, event.kind, payload_object(event.payload)) for event in kept]
    stored = [event for event in checks.stored_rows(scenario, kept[0].session_id) if event["seq"] >= 0]
    there = [(event["seq"], event["kind"], event["payload"]) for event in stored]
    scenario.check(f"{loop.name}: the server holds what the journal holds, each once", there == here, len(there))
    begun = [(tick, role) for tick, role, *_ in loop.begun()]
    scenario.equal(f"{loop.name}: no agent was run twice", len(begun), len(set(begun)))
    finished = [(tick, role) for kind, tick, role in loop.facts() if kind == "role.finished"]
    scenario.equal(f"{loop.name}: what its agents did is in its own journal", finished, begun)
    scenario.equal(f"{loop.name}: no process is left", loop.living(), [])


def _names_what_strayed(scenario: Scenario, project: Project, loop: Loop) -> None:
    [halt] = [payload_object(event.payload) for event in loop.journal() if event.kind == "loop.halted"]
    scenario.equal("the halt names the file outside of the scope, and no other", halt["files"], ["Makefile"])
    task = scenario.read(f"/api/tasks/{loop.journal()[0].task_id}")
    said = next(row["text"] for row in reversed(task["events"]) if row["kind"] == "suspended")
    scenario.equal("its task is suspended, and says why", (task["status"], "Makefile" in said), ("suspended", True))
    scenario.check("the project itself is untouched", not (project.folder / "Makefile").exists())
