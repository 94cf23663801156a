"""Requeue after failure: each attempt ends once, and late results of an earlier attempt change nothing."""

from __future__ import annotations

from bundles import checks
from bundles.rig.saddle import Saddle
from bundles.runner import Scenario

NAME = "requeue"
TITLE = "each attempt fails once; late results of an earlier attempt change nothing"
RESTARTS = True

FIRST, SECOND = "The disk was full.", "The disk was full again."


def run(scenario: Scenario) -> None:
    saddle = scenario.saddle()
    _a_task_fails_twice(scenario, saddle)
    _a_goal_fails_twice(scenario, saddle)


def _a_task_fails_twice(scenario: Scenario, saddle: Saddle) -> None:
    task = scenario.create("tasks", title="Pack the archive")
    first = saddle.must_ask()
    saddle.fail(first.session_id, FIRST)
    requeue = scenario.read(f"/api/tasks/{task}")["actions"]["requeue"]
    scenario.equal("a failed task offers a requeue", scenario.owner.call(requeue).status, 200)
    scenario.equal("it is queued again", scenario.read(f"/api/tasks/{task}")["status"], "queued")

    saddle.say(first.session_id, "message", {"role": "assistant", "text": "Still here."})
    late = saddle.state(first.session_id, "done", "It did work after all.")
    checks.receipt(scenario, "a late result of the first attempt is stored", late, stored=1)
    scenario.equal("and changes nothing", scenario.read(f"/api/tasks/{task}")["status"], "queued")

    second = saddle.must_ask()
    scenario.equal("the second attempt is claimed", second.task_id, task)
    for state in ("suspended", "done"):
        saddle.state(first.session_id, state, "Late.")
        seen = scenario.read(f"/api/tasks/{task}")["status"]
        scenario.equal(f"a late {state} of the first attempt changes nothing", seen, "working")
    saddle.fail(second.session_id, SECOND)
    scenario.restart()
    saddle.fail(first.session_id, FIRST)
    saddle.fail(second.session_id, SECOND)

    told = scenario.read(f"/api/tasks/{task}")
    texts = [row["text"] for row in checks.rows(told, "task-failed")]
    scenario.equal("two task-failed rows, one for each attempt", texts, [FIRST, SECOND])
    attempts = [(attempt["attempt"], attempt["status"], attempt["summary"]) for attempt in told["attempts"]]
    scenario.equal("two attempts, each with its summary", attempts, [(1, "failed", FIRST), (2, "failed", SECOND)])
    page = scenario.page(f"/tasks/{task}")
    scenario.check("the page shows both", FIRST in page.text and SECOND in page.text, page.text)


def _a_goal_fails_twice(scenario: Scenario, saddle: Saddle) -> None:
    project = scenario.create("projects", title="Archive")
    goal = scenario.create("goals", project_id=project, title="Pack everything", brief="", branch_name="pack")
    scenario.owner.call(scenario.read(f"/api/goals/{goal}")["actions"]["start"])
    first = saddle.must_ask()
    saddle.fail(first.session_id, FIRST)
    scenario.equal("the goal is failed", scenario.read(f"/api/goals/{goal}")["status"], "failed")
    reopen = scenario.read(f"/api/goals/{goal}")["actions"]["reopen"]
    scenario.equal("a failed goal offers to be reopened", scenario.owner.call(reopen).status, 200)
    second = saddle.must_ask()
    scenario.equal("the same run task is handed out again", second.task_id, first.task_id)
    scenario.equal("the goal runs again", scenario.read(f"/api/goals/{goal}")["status"], "running")
    late = saddle.state(first.session_id, "done", "Late.")
    checks.receipt(scenario, "a late result of the first run is stored", late, stored=1)
    scenario.equal("and the goal runs on", scenario.read(f"/api/goals/{goal}")["status"], "running")
    saddle.fail(second.session_id, SECOND)
    for again in (first, second):
        saddle.fail(again.session_id, FIRST if again is first else SECOND)

    told = scenario.read(f"/api/goals/{goal}")
    texts = [row["text"] for row in checks.rows(told, "goal-failed")]
    scenario.equal("one goal-failed row for each failed attempt", texts, [FIRST, SECOND])
    scenario.equal("the goal is failed again", told["status"], "failed")
