"""The connection cut after the server committed and before its answer arrived: all that is sent again is known."""

from __future__ import annotations

from collections.abc import Callable

from bundles import checks
from bundles.rig.proxy import Link
from bundles.rig.saddle import Saddle
from bundles.rig.wire import Answer, LostAnswer
from bundles.runner import Scenario

NAME = "lost-answer"
TITLE = "whatever was done before its answer got lost is not done again"
RESTARTS = False

ALWAYS = Link(cut_share=1.0)
EVENTS = [{"seq": seq, "kind": "comment", "actor": "model", "payload": {"body": f"Step {seq}."}} for seq in range(20)]


def run(scenario: Scenario) -> None:
    saddle = scenario.saddle()
    proxy = scenario.link(ALWAYS)
    deaf = Saddle(saddle.name, scenario.wire(scenario.token("saddle", saddle.name), through=proxy))
    task = scenario.create("tasks", title="Be heard")

    ask = {"session_id": "chosen"}
    _unanswered(scenario, "an ask", lambda: deaf.wire.post("/api/saddle/ask", ask))
    again = saddle.wire.post("/api/saddle/ask", ask).json
    seen = (again["task"]["id"], again["session_id"])
    scenario.equal("asked again under the same session id, the same task is given", seen, (task, "chosen"))
    _unanswered(scenario, "an opening", lambda: deaf.open("second", task, resumed_from="chosen"))
    scenario.equal("opened again: 200", saddle.open("second", task, resumed_from="chosen").status, 200)

    _unanswered(scenario, "a chunk", lambda: deaf.push("chosen", EVENTS))
    answer = saddle.push("chosen", EVENTS)
    checks.receipt(scenario, "pushed again: all duplicates, nothing new", answer, stored=0, duplicates=20)
    _unanswered(scenario, "a result", lambda: deaf.finish("chosen", "Heard."))
    answer = saddle.finish("chosen", "Heard.")
    checks.receipt(scenario, "pushed again: a duplicate", answer, stored=0, duplicate=True)

    owner = scenario.wire(scenario.server.owner_token, through=proxy)
    goal = {"id": "wanted", "title": "Want it once"}
    _unanswered(scenario, "a creation", lambda: owner.post("/api/goals", goal))
    scenario.equal("created again: 200", scenario.owner.post("/api/goals", goal).status, 200)
    other = scenario.owner.post("/api/goals", {**goal, "title": "Want another"})
    scenario.equal("with another body: 409", (other.status, other.code), (409, "id_taken"))

    told = scenario.read(f"/api/tasks/{task}")
    kinds = [row["kind"] for row in told["events"]]
    expected = ["task-started", *["comment"] * 20, "task-done"]
    scenario.equal("the task tells each thing once", kinds, expected)
    scenario.equal("every cut came after the commit", proxy.cuts, 5)


def _unanswered(scenario: Scenario, what: str, call: Callable[[], Answer]) -> None:
    try:
        answer = call()
    except LostAnswer:
        scenario.check(f"{what} whose answer is cut off", True)
    else:
        scenario.check(f"{what} whose answer is cut off", False, answer)
