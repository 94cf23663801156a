"""The same key with another payload: the first stays, the loser is kept and named."""

from __future__ import annotations

from typing import Any

from bundles import checks
from bundles.runner import Scenario

NAME = "conflict"
TITLE = "the same key with other content: the first stays, the loser is kept, receipt and page say so"
RESTARTS = True


def run(scenario: Scenario) -> None:
    saddle = scenario.saddle()
    scenario.create("tasks", title="Say two things")
    session = saddle.must_ask().session_id
    saddle.push(session, [_remark("It works."), _note(8, {"a": 1, "b": [True, None]})])

    answer = saddle.push(session, [_remark("It does not work."), _note(9, {})])
    sentence = "another payload under a known key is a conflict; the rest of the chunk is stored"
    checks.receipt(scenario, sentence, answer, stored=1, duplicates=0, conflicts=[{"seq": 7}])
    _first_stays(scenario, session)

    again = saddle.push(session, [_remark("It does not work.")])
    checks.receipt(scenario, "the loser again is the same conflict", again, stored=0, conflicts=[{"seq": 7}])
    scenario.equal("and is kept once", len(_losers(scenario, session)), 1)
    other = saddle.push(session, [{**_remark("It works."), "actor": "user"}])
    checks.receipt(scenario, "another actor is other content", other, stored=0, conflicts=[{"seq": 7}])

    raw = b'{"session_id":"%s","events":[{"seq":8,"kind":"note","actor":"model","payload":'
    same = saddle.wire.post_raw("/api/saddle/chunks", raw % session.encode() + b'{ "b":[true,null], "a":1.0 }}]}')
    sentence = "white space, key order and the spelling of numbers are no other content"
    checks.receipt(scenario, sentence, same, stored=0, duplicates=1, conflicts=[])

    scenario.restart()
    again = saddle.push(session, [_remark("It does not work.")])
    checks.receipt(scenario, "after a restart it is a conflict still", again, stored=0, conflicts=[{"seq": 7}])
    _first_stays(scenario, session)


def _first_stays(scenario: Scenario, session: str) -> None:
    held = [event["payload"] for event in checks.stored_rows(scenario, session) if event["seq"] == 7]
    scenario.equal("the first stays", held, [{"body": "It works."}])
    losers = [(loser["seq"], loser["payload"]) for loser in _losers(scenario, session)]
    scenario.check("the loser is kept", (7, {"body": "It does not work."}) in losers, losers)
    page = scenario.page(f"/sessions/{session}").text
    scenario.check("the session's page says so", "conflict" in page.lower(), page[:400])


def _losers(scenario: Scenario, session: str) -> list[dict[str, Any]]:
    losers: list[dict[str, Any]] = scenario.read(f"/api/sessions/{session}")["conflicts"]
    return losers


def _remark(body: str) -> dict[str, Any]:
    return {"seq": 7, "kind": "comment", "actor": "model", "payload": {"body": body}}


def _note(seq: int, payload: dict[str, Any]) -> dict[str, Any]:
    return {"seq": seq, "kind": "note", "actor": "model", "payload": payload}
