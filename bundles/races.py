"""Races: whatever is asked for at the same moment on two connections happens once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from bundles import checks
from bundles.rig.wire import Answer
from bundles.runner import Scenario

NAME = "races"
TITLE = "two saddles claim a task once, two starts start a goal once, two pushes store an event once"
RESTARTS = False

ROUNDS = 12


def run(scenario: Scenario) -> None:
    _two_saddles_and_one_task(scenario)
    _a_long_poll_is_woken(scenario)
    _two_starts_of_one_goal(scenario)
    _the_same_chunk_twice_at_once(scenario)
    _two_openings_of_one_session(scenario)


def together(*calls: Callable[[], Answer]) -> list[Answer]:
    """Makes the calls at the same moment, each in a thread of its own; answers in the calls' order."""
    line = threading.Barrier(len(calls))

    def at_once(call: Callable[[], Answer]) -> Answer:
        line.wait(10)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(at_once, calls))


def _two_saddles_and_one_task(scenario: Scenario) -> None:
    one, two = scenario.saddle("saddle-1").wire, scenario.saddle("saddle-2").wire
    claims = []
    for number in range(ROUNDS):
        task = scenario.create("tasks", title=f"Contested {number}")
        answers = together(*[partial(wire.post, "/api/saddle/ask", {}) for wire in (one, two)])
        sessions = scenario.read(f"/api/tasks/{task}")["sessions"]
        claims.append((sorted(answer.status for answer in answers), len(sessions)))
    sentence = f"of two saddles that ask at once, one claims the task ({ROUNDS} rounds)"
    scenario.equal(sentence, claims, [([200, 204], 1)] * ROUNDS)


def _a_long_poll_is_woken(scenario: Scenario) -> None:
    saddle = scenario.saddle("saddle-1")
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(saddle.ask, 20)
        task = scenario.create("tasks", title="Awaited")
        work = asked.result(25)
    scenario.equal("a saddle that waits is given the task", work and work.task_id, task)


def _two_starts_of_one_goal(scenario: Scenario) -> None:
    project = scenario.create("projects", title="Races")
    started = []
    for number in range(ROUNDS):
        body = {"title": f"Goal {number}", "project_id": project, "brief": "", "branch_name": "b"}
        goal = scenario.create("goals", **body)
        start = scenario.read(f"/api/goals/{goal}")["actions"]["start"]
        answers = together(*[partial(scenario.owner.call, start)] * 2)
        told = scenario.read(f"/api/goals/{goal}")
        runs = [task for task in told["tasks"] if task["kind"] == "goal_run"]
        started.append((min(a.status for a in answers), len(runs), len(checks.rows(told, "goal-started"))))
    sentence = f"two starts of one goal make one run task and one goal-started row ({ROUNDS} rounds)"
    scenario.equal(sentence, started, [(200, 1, 1)] * ROUNDS)


def _the_same_chunk_twice_at_once(scenario: Scenario) -> None:
    saddle = scenario.saddle("saddle-1")
    task = scenario.create("tasks", title="Doubled")
    saddle.open("doubled", task)
    sums = []
    for number in range(ROUNDS):
        events = [{"seq": number * 10 + n, "kind": "note", "actor": "model", "payload": {"n": n}} for n in range(10)]
        one, two = together(*[partial(saddle.push, "doubled", events)] * 2)
        sums.append(tuple(one.json[field] + two.json[field] for field in ("stored", "duplicates")))
    sentence = f"the same chunk twice at once: the two receipts add up ({ROUNDS} rounds)"
    scenario.equal(sentence, sums, [(10, 10)] * ROUNDS)
    held = [event["seq"] for event in checks.stored_rows(scenario, "doubled") if event["seq"] >= 0]
    scenario.equal("and each event is there once", held, list(range(ROUNDS * 10)))


def _two_openings_of_one_session(scenario: Scenario) -> None:
    saddle = scenario.saddle("saddle-1")
    task = scenario.create("tasks", title="Opened twice")
    opened = together(*[partial(saddle.open, "opened-twice", task)] * 2)
    scenario.equal("of two openings one makes the session", sorted(a.status for a in opened), [200, 201])
    other = scenario.create("tasks", title="Elsewhere")
    answer = saddle.open("opened-twice", other)
    scenario.equal("under another task it is refused", (answer.status, answer.code), (409, "session_elsewhere"))
