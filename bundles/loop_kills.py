"""The runner of a loop is killed at every step of a round, with the server away: no round is lost or counted twice.

Its agents leave a child behind, in a session of its own. The server comes back at the end, and is told everything.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from bundles import checks
from bundles.rig import looping
from bundles.rig.looping import ROLES, Loop, Project
from bundles.runner import Scenario
from ledger.events.content import payload_object

NAME = "loop_kills"
TITLE = "a loop's runner is killed at every step, the server away: no round lost, none counted twice, no orphan"
RESTARTS = False  # it kills by itself

RANDOM_KILLS = 1
BEFORE_RANDOM_KILL_S_MAX = 1.2
VERDICT = {"pass": False, "score": 0.5, "reasons": ["Not yet."]}
UNLIMITED = {"max_iterations": None, "score_plateau_window": 0}

Role = tuple[int, str]  # of a round


@dataclass(frozen=True)
class _Step:
    """Where to kill: when the journal has one more fact of that kind (and role), when an agent of the role is `at
    work`, or when it is `gone` and that may not yet be in the journal. Agents of the role `held` wait meanwhile, so
    that the round comes no further."""

    when: str
    role: str | None = None
    held: str | None = None
    with_guard: bool = False  # so that only the next tick can end what is left


def _steps() -> Iterator[_Step]:
    """In the order in which they come in a round."""
    yield _Step("tick.started", held=ROLES[0])
    for role, next_role in zip(ROLES, (*ROLES[1:], None), strict=True):
        yield _Step("at work", role, held=role, with_guard=role == "verify")
        yield _Step("gone", role, held=next_role)
        yield _Step("role.finished", role, held=next_role)
    yield _Step("tick.completed")


def run(scenario: Scenario) -> None:
    token = scenario.token("saddle", "loops")
    project = scenario.held(Project(scenario.folder / "project", lambda: scenario.server.url, token))
    loops = [Loop(project, name, verdicts=[VERDICT], brakes=UNLIMITED) for name in ("one", "other")]
    steps = tuple(_steps())
    moments = [scenario.random.uniform(0, BEFORE_RANDOM_KILL_S_MAX) for _ in range(RANDOM_KILLS)]
    scenario.server.stop()
    try:
        with ThreadPoolExecutor(len(loops)) as pool:  # each is killed at its share of the steps
            fates = [
                pool.submit(_fire, loop, steps[n :: len(loops)], moments[n :: len(loops)])
                for n, loop in enumerate(loops)
            ]
            for loop, fate in zip(loops, fates, strict=True):
                _survived(scenario, loop, *fate.result())
    finally:
        for loop in loops:
            loop.end_all()
    scenario.server.start()
    project.drain()
    for loop in loops:
        _complete_on_the_server(scenario, loop)


def _fire(loop: Loop, steps: tuple[_Step, ...], moments: list[float]) -> tuple[int, list[Role]]:
    """Kills a runner at each of the steps and at the moments; each goes on where the one before was killed, and the
    last is let be. Gives the count of rounds that it says, and the roles that were run though they had finished."""
    again: list[Role] = []
    for number, step in enumerate([*steps, *moments, None]):
        done = {(tick, role) for kind, tick, role in loop.facts() if kind == "role.finished"}
        begun = len(loop.begun())
        if step is None:
            rounds = int(loop.tick()["iter"])
        elif isinstance(step, _Step):
            _kill_at(loop, step)
        else:
            runner = loop.start()
            time.sleep(step)  # the random moment is the point
            looping.kill(runner)
        again += [(tick, role) for tick, role, *_ in loop.begun()[begun:] if (tick, role) in done]
        if not (isinstance(step, _Step) and step.with_guard):
            looping.wait_for(f"nothing of {loop.name} is left after kill {number}", lambda: not loop.living())
    return rounds, again


def _kill_at(loop: Loop, step: _Step) -> None:
    def said() -> int:
        return sum(kind == step.when and role == step.role for kind, _, role in loop.facts())

    def agents() -> list[int]:
        return [pid for _, role, pid, _ in loop.begun() if role == step.role]

    said_before, agents_before = said(), len(agents())
    if step.held is not None:
        loop.hold(step.held)
    runner = loop.start()
    try:
        if step.when in ("at work", "gone"):
            looping.wait_for(f"{step}", lambda: len(agents()) > agents_before)
            if step.when == "gone":
                looping.wait_for(f"{step}", lambda: not looping.is_running(agents()[-1]))
        else:
            looping.wait_for(f"{step}", lambda: said() > said_before)
        if step.with_guard:
            looping.kill_with_guard(runner, agents()[-1])
    finally:
        looping.kill(runner)
    if step.held is not None:
        loop.let_go(step.held)


def _survived(scenario: Scenario, loop: Loop, rounds: int, again: list[Role]) -> None:
    facts = loop.facts()
    begun = {tick for kind, tick, _ in facts if kind == "tick.started" and tick is not None}
    counted = Counter(tick for kind, tick, _ in facts if kind == "tick.completed")
    name = loop.name
    scenario.equal(f"{name}: every round that was begun is completed, once", counted, Counter(begun))
    scenario.equal(f"{name}: the rounds are numbered without a gap", sorted(begun), [*range(1, len(begun) + 1)])
    scenario.equal(f"{name}: the last tick counts each once", rounds, len(begun))
    verdicts = Counter(tick for kind, tick, _ in facts if kind == "verdict")
    scenario.equal(f"{name}: each has one verdict", verdicts, counted)
    finished = Counter((tick, role) for kind, tick, role in facts if kind == "role.finished")
    expected = Counter((tick, role) for tick in begun for role in ROLES)
    scenario.equal(f"{name}: each role of each round has finished once", finished, expected)
    scenario.equal(f"{name}: no role that had finished was run again", again, [])
    scenario.equal(f"{name}: no process is left", loop.living(), [])


def _complete_on_the_server(scenario: Scenario, loop: Loop) -> None:
    kept = [event for event in loop.journal() if event.seq >= 0]
    here = [(event.seq, event.kind, payload_object(event.payload)) for event in kept]
    stored = [event for event in checks.stored_rows(scenario, kept[0].session_id) if event["seq"] >= 0]
    there = [(event["seq"], event["kind"], event["payload"]) for event in stored]
    same = scenario.check(
        f"{loop.name}: the server holds what the journal holds, each once", there == here, len(there)
    )
    if not same:
        scenario.equal(f"{loop.name}: seqs and kinds", [fact[:2] for fact in there], [fact[:2] for fact in here])
