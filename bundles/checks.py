"""Checks that several scenarios share, and the auditor that knows what was sent and what was acknowledged."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from bundles.rig.wire import Answer, Wire
from bundles.runner import Scenario

Key = tuple[str, int]  # (session_id, seq): the identity of an event


def receipt(scenario: Scenario, sentence: str, answer: Answer, **expected: Any) -> bool:
    """A push was answered with 200 and a receipt that says what is expected of some of its fields."""
    if answer.status != 200:
        return scenario.check(sentence, False, answer)
    body = answer.json
    seen = {field: body.get(field) for field in expected}
    return scenario.equal(sentence, seen, expected)


def rows(thing: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """The rows of one kind in the narrative of a goal or task."""
    return [row for row in thing["events"] if row["kind"] == kind]


def one_row(scenario: Scenario, sentence: str, thing: dict[str, Any], kind: str) -> bool:
    """The narrative has exactly one row of the kind."""
    return scenario.equal(sentence, len(rows(thing, kind)), 1)


def stored_rows(scenario: Scenario, session_id: str) -> list[dict[str, Any]]:
    """All events of a session that the log holds, the opening included, in seq order."""
    found: list[dict[str, Any]] = scenario.read(f"/api/sessions/{session_id}/events?limit=1000")["events"]
    return found


def comments_in_log(scenario: Scenario, task_id: str) -> list[dict[str, Any]]:
    """The comment events in a task's scope, as the log holds them."""
    pages = scenario.reader.feed()
    return [e for page in pages for e in page["events"] if e["task_id"] == task_id and e["kind"] == "comment"]


class Auditor:
    """Knows every event that was sent and which of them were acknowledged; safe to tell from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent: dict[Key, bytes] = {}
        self._acknowledged: set[Key] = set()

    def sent(self, session_id: str, events: Sequence[dict[str, Any]]) -> None:
        with self._lock:
            self._sent.update({(session_id, event["seq"]): _content(event) for event in events})

    def acknowledged(self, session_id: str, events: Sequence[dict[str, Any]]) -> None:
        with self._lock:
            self._acknowledged.update((session_id, event["seq"]) for event in events)

    def acknowledged_now(self) -> frozenset[Key]:
        with self._lock:
            return frozenset(self._acknowledged)

    def sent_now(self) -> dict[Key, bytes]:
        with self._lock:
            return dict(self._sent)


class LogReader:
    """Reads the log on from where it read last, and remembers what it holds: the events of saddles, not the
    ledger's own."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._cursor: str | None = None
        self.copies: Counter[Key] = Counter()
        self.contents: dict[Key, bytes] = {}

    def read_on(self) -> None:
        for page in self._wire.feed(self._cursor):
            self._cursor = page["cursor"]
            for event in page["events"]:
                if event["seq"] < 0 or event["session_id"].startswith("@"):
                    continue
                key = (event["session_id"], event["seq"])
                self.copies[key] += 1
                self.contents[key] = _content(event)


def all_acknowledged(scenario: Scenario, sentence: str, log: LogReader, acknowledged: frozenset[Key]) -> bool:
    """Everything acknowledged is in the log."""
    lost = sorted(acknowledged - log.contents.keys())
    such_as = f", such as {lost[:3]}" if lost else ""
    return scenario.check(sentence, not lost, f"{len(acknowledged)} acknowledged, {len(lost)} lost{such_as}")


def exactly_sent(scenario: Scenario, auditor: Auditor, log: LogReader) -> None:
    """The log holds exactly what was sent: nothing is missing, nothing was made up, nothing is there twice."""
    sent = auditor.sent_now()
    missing = sorted(sent.keys() - log.contents.keys())
    invented = sorted(log.contents.keys() - sent.keys())
    twice = sorted(key for key, copies in log.copies.items() if copies > 1)
    changed = sorted(key for key in sent.keys() & log.contents.keys() if sent[key] != log.contents[key])
    scenario.equal(f"all {len(sent)} events that were sent are in the log: missing", missing[:5], [])
    scenario.equal("everything in the log was sent: invented", invented[:5], [])
    scenario.equal("nothing is in the log twice: doubled", twice[:5], [])
    scenario.equal("what the log holds is what was sent: changed", changed[:5], [])


def seals_hold(scenario: Scenario, sentence: str) -> bool:
    """`ledgerd verify` finds nothing wrong with the store. The server is stopped for it, and started again."""
    scenario.server.stop()
    verified = scenario.server.command("verify")
    scenario.server.start()
    return scenario.check(sentence, verified.returncode == 0, (verified.stdout + verified.stderr).strip())


def _content(event: dict[str, Any]) -> bytes:
    return msgspec.json.encode([event["kind"], event["actor"], event["payload"]], order="sorted")
