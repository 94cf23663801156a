"""Who gets in: a foreign saddle's push looks unknown, no token is 401, a token of another role is 403."""

from __future__ import annotations

from bundles import checks
from bundles.rig.wire import Wire
from bundles.runner import Scenario

NAME = "access"
TITLE = "a foreign saddle is told 404, no token 401, a reader's token 403; nothing of it is stored"
RESTARTS = True

EVENTS = [{"seq": 7, "kind": "comment", "actor": "model", "payload": {"body": "Let me in."}}]


def run(scenario: Scenario) -> None:
    saddle = scenario.saddle("saddle-1")
    task = scenario.create("tasks", title="Stay private")
    work = saddle.must_ask()
    before = checks.stored_rows(scenario, work.session_id)
    _pushes_are_refused(scenario, work.session_id)
    _decisions_are_refused(scenario, task)
    scenario.equal("nothing is stored", checks.stored_rows(scenario, work.session_id), before)
    scenario.equal("the task works on", scenario.read(f"/api/tasks/{task}")["status"], "working")
    _tokens_end(scenario, task, work.session_id)


def _pushes_are_refused(scenario: Scenario, session_id: str) -> None:
    foreign = scenario.saddle("saddle-2").wire
    unknown = foreign.post("/api/saddle/chunks", {"session_id": "no-such-session", "events": EVENTS})
    callers: list[tuple[str, Wire, int]] = [
        ("a foreign saddle", foreign, 404),
        ("no token", scenario.wire(None), 401),
        ("an invented token", scenario.wire("not-a-token"), 401),
        ("a reader's token", scenario.reader, 403),
    ]
    for who, wire, status in callers:
        chunk = wire.post("/api/saddle/chunks", {"session_id": session_id, "events": EVENTS})
        result = wire.post("/api/saddle/results", {"session_id": session_id, "state": "failed"})
        scenario.equal(f"{who}: a push is {status}", (chunk.status, result.status), (status, status))
        if status == 404:
            seen = (chunk.code, chunk.json["detail"].replace(session_id, "no-such-session"))
            sentence = "a foreign session cannot be told from an unknown one"
            scenario.equal(sentence, seen, (unknown.code, unknown.json["detail"]))


def _decisions_are_refused(scenario: Scenario, task: str) -> None:
    for who, wire, status in [
        ("a saddle", scenario.saddle("saddle-1").wire, 403),
        ("a reader", scenario.reader, 403),
        ("nobody", scenario.wire(None), 401),
    ]:
        cancel = wire.post(f"/api/tasks/{task}/cancel")
        create = wire.post("/api/tasks", {"title": "Mine"})
        token = wire.post("/api/tokens", {"role": "owner", "name": "me"})
        seen = (cancel.status, create.status, token.status)
        scenario.equal(f"{who} may decide nothing: {status}", seen, (status, status, status))
    for path in ("/api/tasks", "/api/fleet", "/api/events", f"/api/tasks/{task}"):
        scenario.equal(f"without a token {path} is 401", scenario.wire(None).get(path).status, 401)


def _tokens_end(scenario: Scenario, task: str, session_id: str) -> None:
    made = scenario.owner.post("/api/tokens", {"role": "saddle", "name": "saddle-1"}).json
    rotated = scenario.wire(made["token"])
    push = {"session_id": session_id, "events": EVENTS}
    answer = rotated.post("/api/saddle/chunks", push)
    checks.receipt(scenario, "a new token of the same name is the same saddle", answer, stored=1)
    listed = scenario.owner.get("/api/tokens").text
    scenario.check("no token is ever listed", made["token"] not in listed)
    revoked = scenario.owner.delete(f"/api/tokens/{made['id']}")
    scenario.check("a token can be revoked", revoked.status in (200, 204), revoked)
    scenario.equal("a revoked token is 401", rotated.post("/api/saddle/chunks", push).status, 401)
    scenario.restart()
    scenario.equal("also after a restart", rotated.post("/api/saddle/chunks", push).status, 401)
    scenario.equal("the other tokens hold", scenario.reader.get(f"/api/tasks/{task}").status, 200)
