"""Churn inside one task: the same remarks under a second session of the same task are stored, and shown once."""

from __future__ import annotations

from bundles import checks
from bundles.runner import Scenario

NAME = "churn"
TITLE = "the same remarks under a second session of the same task are one row each"
RESTARTS = True

REMARKS = ["The tests pass without the cache.", "The cache keeps a closed file.", "Closing it late mends it."]


def run(scenario: Scenario) -> None:
    saddle = scenario.saddle()
    task = scenario.create("tasks", title="Mend the cache")
    work = saddle.must_ask()
    remarks = [
        {"seq": seq, "kind": "comment", "actor": "model", "payload": {"body": body}}
        for seq, body in enumerate(REMARKS)
    ]
    checks.receipt(scenario, "the remarks are stored", saddle.push(work.session_id, remarks), stored=3)
    before = scenario.read(f"/api/tasks/{task}")

    saddle.open("churned", task, resumed_from=work.session_id)
    answer = saddle.push("churned", remarks)
    checks.receipt(scenario, "under a second session of the task they are stored too", answer, stored=3)
    _shown_once(scenario, "shown once, copies 2", task)
    after = scenario.read(f"/api/tasks/{task}")
    scenario.equal("the digest is the same as before", after["digest"], before["digest"])
    sessions = sorted(session["session_id"] for session in after["sessions"])
    scenario.equal("one task, two sessions", sessions, sorted(["churned", work.session_id]))
    scenario.equal("one attempt", len(after["attempts"]), 1)

    scenario.restart()
    checks.receipt(scenario, "after a restart nothing is new", saddle.push("churned", remarks), stored=0)
    _shown_once(scenario, "after a restart still shown once", task)
    _activity_does_not_jump_back(scenario, task)


def _shown_once(scenario: Scenario, sentence: str, task: str) -> None:
    comments = checks.rows(scenario.read(f"/api/tasks/{task}"), "comment")
    seen = [(row["text"], row["copies"]) for row in comments]
    scenario.equal(sentence, seen, [(body, 2) for body in REMARKS])
    shown = [scenario.page(f"/tasks/{task}").text.count(body) for body in REMARKS[:2]]
    scenario.equal(f"{sentence} (on the page)", shown, [1, 1])


def _activity_does_not_jump_back(scenario: Scenario, task: str) -> None:
    """The last remark stays the current activity although a copy of the first came in after it."""
    scenario.saddle().open("churned-again", task, resumed_from="churned")
    first = {"seq": 0, "kind": "comment", "actor": "model", "payload": {"body": REMARKS[0]}}
    scenario.saddle().push("churned-again", [first])
    told = scenario.read(f"/api/tasks/{task}")
    scenario.equal("a copy of the first remark is no newer activity", told["current_command"], REMARKS[-1])
    scenario.equal("it is a third copy", checks.rows(told, "comment")[0]["copies"], 3)
