"""What comes after the end is consumed: it is answered with 200 and changes no status."""

from __future__ import annotations

from bundles import checks
from bundles.runner import Scenario

NAME = "terminal"
TITLE = "whatever is said after a terminal state is consumed"
RESTARTS = False

LATER_STATES = ("failed", "done", "cancelled", "working", "waiting", "suspended")
REPEATS = 30


def run(scenario: Scenario) -> None:
    for first in ("done", "failed"):
        _later_states_are_consumed(scenario, first)
    _done_after_a_cancel(scenario)


def _later_states_are_consumed(scenario: Scenario, first: str) -> None:
    saddle = scenario.saddle()
    task = scenario.create("tasks", title=f"End as {first}")
    work = saddle.must_ask()
    saddle.end(work.session_id, first, "The end.")
    before = scenario.read(f"/api/tasks/{task}")
    scenario.equal(f"the task is {first}", before["status"], first)

    other = f"after-{first}"
    saddle.open(other, task, resumed_from=work.session_id)
    for state in LATER_STATES:
        own = saddle.state(work.session_id, state, "Not the end.")
        churned = saddle.state(other, state, "Not the end.")
        seen = (own.status, own.json["task"]["status"], churned.status, churned.json["task"]["status"])
        scenario.equal(f"{state} after {first} is consumed", seen, (200, first, 200, first))
    conflicting = saddle.end(work.session_id, "failed" if first == "done" else "done", "Not the end.")
    scenario.equal("another end in the same slot is a conflict", conflicting.json["conflict"], True)
    for _ in range(REPEATS):
        saddle.end(work.session_id, first, "The end.")

    after = scenario.read(f"/api/tasks/{task}")
    seen = (after["status"], after["summary"], len(checks.rows(after, f"task-{first}")), len(after["attempts"]))
    sentence = f"however often it is repeated, {first} is one transition with one summary"
    scenario.equal(sentence, seen, (first, "The end.", 1, 1))
    ends = [row["kind"] for row in after["events"] if row["kind"] in ("task-done", "task-failed", "task-cancelled")]
    scenario.equal("no other end is told", ends, [f"task-{first}"])


def _done_after_a_cancel(scenario: Scenario) -> None:
    saddle = scenario.saddle()
    task = scenario.create("tasks", title="Be cancelled")
    work = saddle.must_ask()
    cancel = scenario.read(f"/api/tasks/{task}")["actions"]["cancel"]
    scenario.equal("a working task can be cancelled", scenario.owner.call(cancel).status, 200)
    answer = saddle.finish(work.session_id, "Done all the same.")
    seen = (answer.status, answer.json["task"]["status"], scenario.read(f"/api/tasks/{task}")["status"])
    scenario.equal("done after a cancel is consumed", seen, (200, "cancelled", "cancelled"))
    gone = [row["kind"] for row in scenario.read(f"/api/tasks/{task}")["events"]]
    scenario.check("and no end but the cancel is told", "task-done" not in gone, gone)
