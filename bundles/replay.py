"""The replay: pushed again, under the same session or another, after a restart or not, everything is said once."""

from __future__ import annotations

from typing import Any

from bundles import checks
from bundles.rig.saddle import Saddle, Work
from bundles.runner import Scenario

NAME = "replay"
TITLE = "what is delivered again is stored once and said once"
RESTARTS = True

BATCH = [
    {
        "seq": 5001,
        "kind": "tool_call",
        "actor": "model",
        "payload": {"turn": 12, "tool": "run_command", "args": {"command": "make test"}},
    },
    {
        "seq": 5002,
        "kind": "tool_result",
        "actor": "harness",
        "payload": {"turn": 12, "stdout": "ok", "exit_code": 0},
    },
]
TASK_FAILURE = "The linter found 14 errors in parser.py and none could be fixed without changing the grammar."
GOAL_FAILURE = "The budget ran out before the second half of the port was started."
REMARK = "Found the cause: the tokenizer drops the last byte of each file. Fixing it next."
ECHO = f"cat << 'EOF' | ledgerd comment\n{REMARK}\nEOF"


def run(scenario: Scenario) -> None:
    saddle = scenario.saddle()
    _pushes_are_idempotent(scenario, saddle)
    _a_failed_push_projects_once(scenario, saddle)
    project = scenario.create("projects", title="Port")
    _a_goals_failure_projects_once(scenario, saddle, project)
    _remarks_ride_the_ledger(scenario, saddle, project)
    queued = scenario.read("/api/tasks?status=queued")["items"]
    scenario.check("17. at the end nothing is left queued", not queued and saddle.ask() is None, queued)


def _pushes_are_idempotent(scenario: Scenario, saddle: Saddle) -> None:
    first = scenario.create("tasks", title="Build the parser")
    work = saddle.must_ask()
    saddle.say(work.session_id, "message", {"role": "assistant", "text": "Building."})
    saddle.finish(work.session_id, "It builds.")
    done = scenario.read(f"/api/tasks/{first}")
    scenario.equal(
        "1. a first task is queued, claimed, worked and done", (work.task_id, done["status"]), (first, "done")
    )

    answer = saddle.push(work.session_id, BATCH)
    checks.receipt(
        scenario, "2. two events are pushed to its session although it is done: stored 2", answer, stored=2
    )
    session = f"/sessions/{work.session_id}"
    shown = scenario.page(session).text.count("make test")
    scenario.equal("2. the session's page shows the command once", shown, 1)

    before = _said(scenario, work)
    checks.receipt(scenario, "3. the same batch again: stored 0", saddle.push(work.session_id, BATCH), stored=0)
    scenario.equal("3. the session's row count is unchanged, nothing is said", _said(scenario, work), before)
    shown = scenario.page(session).text.count("make test")
    scenario.equal("3. the session's page shows the command once", shown, 1)

    second = scenario.create("tasks", title="Build the printer")
    churned = saddle.must_ask()
    sentence = "4. the same batch under a new session of another task (churn) is another key: stored 2"
    answer = saddle.push(churned.session_id, BATCH)
    scenario.equal("4. the new session's task is the other one", churned.task_id, second)
    checks.receipt(scenario, sentence, answer, stored=2)

    scenario.restart()
    sentence = "5. after a restart the same batch under the churned session: stored 0"
    checks.receipt(scenario, sentence, saddle.push(churned.session_id, BATCH), stored=0)
    scenario.equal("5. a fresh ask finds nothing queued", saddle.ask(), None)
    seen = [seat["name"] for seat in scenario.read("/api/fleet")["saddles"] if seat["last_contact"]]
    scenario.check("5. and brings the saddle's bookkeeping back", saddle.name in seen, seen)
    saddle.finish(churned.session_id, "It prints.")


def _said(scenario: Scenario, work: Work) -> tuple[int, list[dict[str, Any]]]:
    """How many rows the session has, and what its task tells."""
    session = scenario.read(f"/api/sessions/{work.session_id}")
    return session["events"], scenario.read(f"/api/tasks/{work.task_id}")["events"]


def _a_failed_push_projects_once(scenario: Scenario, saddle: Saddle) -> None:
    task = scenario.create("tasks", title="Fix the lint")
    work = saddle.must_ask()
    answer = saddle.fail(work.session_id, TASK_FAILURE)
    failed = scenario.read(f"/api/tasks/{task}")
    seen = (answer.status, answer.json["task"]["status"], failed["status"], failed["summary"])
    expected = (200, "failed", "failed", TASK_FAILURE)
    scenario.equal("6. a failed result with a summary: the task is failed, its summary holds it", seen, expected)
    _stands_once(scenario, "7. the explanation stands once, zero comments by the agent", task)

    again = saddle.fail(work.session_id, TASK_FAILURE)
    saddle.open("churned-failure", task, resumed_from=work.session_id)
    churned = saddle.fail("churned-failure", TASK_FAILURE)
    sentence = "8. the same result again under its session and under a churned one: 200, consumed"
    scenario.equal(sentence, (again.status, churned.status), (200, 200))
    checks.receipt(scenario, "8. under its own session it is a duplicate", again, stored=0, duplicate=True)
    _stands_once(scenario, "8. still one transition, one summary, zero comments", task)


def _stands_once(scenario: Scenario, sentence: str, task: str) -> None:
    now = scenario.read(f"/api/tasks/{task}")
    comments = len(checks.comments_in_log(scenario, task)) + len(checks.rows(now, "comment"))
    transitions = len(checks.rows(now, "task-failed"))
    seen = (now["status"], now["summary"], transitions, len(now["attempts"]), comments)
    scenario.equal(sentence, seen, ("failed", TASK_FAILURE, 1, 1, 0))
    shown = scenario.page(f"/tasks/{task}")
    told = (shown.text.count(TASK_FAILURE), len(shown.parts("remark")))
    scenario.equal(f"{sentence} (on the page)", told, (1, 0))


def _a_goals_failure_projects_once(scenario: Scenario, saddle: Saddle, project: str) -> None:
    goal, work = _parked_goal(scenario, saddle, project, "Port the parser")
    told = scenario.read(f"/api/goals/{goal}")
    runs = [task["id"] for task in told["tasks"] if task["kind"] == "goal_run"]
    scenario.equal("9. started by the action its JSON offers, it has one goal_run task", runs, [work.task_id])
    seen = (scenario.read(f"/api/tasks/{work.task_id}")["status"], told["status"])
    scenario.equal("9. parked, the task reads suspended and the goal shows it", seen, ("suspended", "suspended"))
    scenario.check("9. the goal's page shows it", "suspended" in scenario.page(f"/goals/{goal}").text.lower())

    answer = saddle.fail(work.session_id, GOAL_FAILURE)
    seen = (answer.status, scenario.read(f"/api/goals/{goal}")["status"])
    scenario.equal("10. a failed result under the run's session: the goal is failed", seen, (200, "failed"))
    _fails_once(scenario, "10. its narrative has exactly one goal-failed row", goal)

    again = saddle.fail(work.session_id, GOAL_FAILURE)
    saddle.open("churned-run", work.task_id, resumed_from=work.session_id)
    churned = saddle.fail("churned-run", GOAL_FAILURE)
    sentence = "11. the same result again under the run's session and under a churned one: 200"
    scenario.equal(sentence, (again.status, churned.status), (200, 200))
    _fails_once(scenario, "11. still one row", goal)
    run_task = scenario.read(f"/api/tasks/{work.task_id}")
    scenario.equal("11. the run task stays failed", run_task["status"], "failed")

    blocks = run_task["blocks"] + scenario.read(f"/api/goals/{goal}")["blocks"]
    scenario.equal("12. zero blocks on the run task", blocks, [])
    shown = [*scenario.page(f"/goals/{goal}").parts("block"), *scenario.page(f"/tasks/{work.task_id}").parts("block")]
    scenario.equal("12. zero blocks on the pages", shown, [])


def _parked_goal(scenario: Scenario, saddle: Saddle, project: str, title: str) -> tuple[str, Work]:
    brief = "All of it, with its tests."
    goal = scenario.create("goals", project_id=project, title=title, brief=brief, branch_name="port")
    start = scenario.read(f"/api/goals/{goal}")["actions"]["start"]
    answer = scenario.owner.call(start)
    scenario.equal(f"9. the goal {title!r} is started", answer.status, 200)
    work = saddle.must_ask()
    saddle.park(work.session_id, "Waits for the next window.")
    return goal, work


def _fails_once(scenario: Scenario, sentence: str, goal: str) -> None:
    checks.one_row(scenario, sentence, scenario.read(f"/api/goals/{goal}"), "goal-failed")
    shown = scenario.page(f"/goals/{goal}").text.count(GOAL_FAILURE)
    scenario.equal(f"{sentence} (on the page)", shown, 1)


def _remarks_ride_the_ledger(scenario: Scenario, saddle: Saddle, project: str) -> None:
    goal, work = _parked_goal(scenario, saddle, project, "Port the printer")
    saddle.say(work.session_id, "tool_call", {"turn": 3, "tool": "run_command", "args": {"command": ECHO}})
    answer = saddle.say(work.session_id, "comment", {"body": REMARK})
    checks.receipt(scenario, "13. a comment pushed to a parked goal's session: stored 1", answer, stored=1)
    in_log = len(checks.comments_in_log(scenario, work.task_id))
    scenario.equal("13. one comment event in the task's scope", in_log, 1)

    told = scenario.read(f"/api/goals/{goal}")
    texts = [row["text"] for row in checks.rows(told, "comment")]
    scenario.check(
        "14. one comment row; it begins with the body, without the command or a heredoc mark",
        len(texts) == 1 and texts[0].startswith(REMARK) and not _echoes(texts[0]),
        texts,
    )
    scenario.equal("15. current_command equals the body", told["current_command"], REMARK)
    scenario.check("15. current_since is known", told["current_since"] is not None)
    _shown_as_a_footnote(scenario, goal, told)
    saddle.finish(work.session_id, "The printer is ported.")


def _shown_as_a_footnote(scenario: Scenario, goal: str, told: dict[str, Any]) -> None:
    shown = scenario.page(f"/goals/{goal}")
    remarks = shown.parts("footnote")
    scenario.check("16. the goal's page shows the remark as a footnote", _says(remarks, REMARK), remarks)
    scenario.check("16. and never the command echo", not _echoes(shown.text), shown.text)
    scenario.check("16. nor does anything in the goal's JSON", not _echoes(str(told)))


def _says(texts: list[str], body: str) -> bool:
    return any(body in text for text in texts)


def _echoes(text: str) -> bool:
    return "ledgerd comment" in text or "<<" in text or "EOF" in text
