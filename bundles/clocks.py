"""Clocks that are wrong: one host's is an hour ahead, one session's an hour behind, and the story stands as it came.

What a sender claims as `at` is kept and shown; it orders nothing and decides nothing.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import Any

from bundles import checks
from bundles.rig.saddle import Saddle
from bundles.runner import Scenario
from ledger.events.times import NS_PER_S, format_instant

NAME = "clocks"
TITLE = "clocks an hour ahead and behind: the story stands in the order of arrival, and the skew is told"
RESTARTS = True

HOUR_S = 3600
SLOW_S_MAX = 60  # that an event may take from its making to its recording, on a slow machine
TURNS = 24
BATCH_EVENTS_MAX = 3

Event = dict[str, Any]

_SAID = re.compile(r"[a-z]+ says [0-9]{3}")


@dataclass
class _Voice:
    """A session whose clock is `ahead_s` seconds ahead of the right time. `said` is what it has pushed, by seq."""

    saddle: Saddle
    session_id: str
    task_id: str
    ahead_s: int
    said: dict[int, Event] = field(default_factory=dict)

    def now(self) -> str:
        return format_instant(time.time_ns() + self.ahead_s * NS_PER_S)

    def make(self, count: int) -> list[Event]:
        """The next remarks, with the times of this clock."""
        return [self._event("comment", {"body": f"{self.session_id} says {len(self.said):03}"}) for _ in range(count)]

    def end(self, state: str, summary: str) -> int:
        """Pushes a terminal state with the time of this clock; gives the answer's status."""
        return self.saddle.push(self.session_id, [self._event("result", {"state": state, "summary": summary})]).status

    def _event(self, kind: str, payload: dict[str, Any]) -> Event:
        seq = len(self.said)
        event = {"seq": seq, "kind": kind, "actor": "model", "payload": payload, "at": self.now()}
        self.said[seq] = event
        return event


def run(scenario: Scenario) -> None:
    goal = scenario.create("goals", title="Keep the time")
    tasks = [scenario.create("tasks", title=f"Clock {name}", goal_id=goal) for name in ("right", "fast", "slow")]
    here, there = scenario.saddle("host-right"), scenario.saddle("host-fast")
    right = _open(scenario, here, "right", tasks[0], 0)
    slow = _open(scenario, here, "slow", tasks[2], -HOUR_S)
    arrived: list[Event] = []
    for voice in (right, slow):
        _push(scenario, voice, voice.make(2), arrived)
    scenario.equal("a clock that is behind is no skew", _goal(scenario, goal)["integrity"]["skew"], 0)

    fast = _open(scenario, there, "fast", tasks[1], HOUR_S)
    _push(scenario, fast, fast.make(1), arrived)
    child = _open(scenario, there, "child", tasks[1], -HOUR_S, parent_session_id=fast.session_id)
    voices = [right, slow, fast, child]
    for _ in range(TURNS):
        voice = scenario.random.choice(voices)
        _push(scenario, voice, voice.make(scenario.random.randint(1, BATCH_EVENTS_MAX)), arrived)
    for voice in voices:
        _one_comes_late(scenario, voice, right if voice is not right else fast, arrived)
    _push(scenario, slow, slow.make(1), arrived)  # the last to arrive, and by far not the last by its clock

    _stands_as_it_came(scenario, goal, arrived)
    _kept_as_claimed(scenario, voices)
    _child_stands_after_its_parent(scenario, fast, child)
    _the_first_end_stands(scenario, fast, _open(scenario, there, "churned", tasks[1], -HOUR_S))
    before = _goal(scenario, goal)
    scenario.restart()
    scenario.equal("after a restart the goal reads the same", _told(_goal(scenario, goal)), _told(before))


def _open(scenario: Scenario, saddle: Saddle, session_id: str, task: str, ahead_s: int, **fields: Any) -> _Voice:
    voice = _Voice(saddle, session_id, task, ahead_s)
    answer = saddle.open(session_id, task, host=saddle.name, at=voice.now(), **fields)
    scenario.check(f"session {session_id} is opened", answer.status in (200, 201), answer.status)
    return voice


def _push(scenario: Scenario, voice: _Voice, events: list[Event], arrived: list[Event]) -> None:
    receipt = voice.saddle.push(voice.session_id, events)
    if receipt.status != 200 or receipt.json["stored"] != len(events):
        raise AssertionError(f"{len(events)} events of {voice.session_id} were not stored: {receipt}")
    arrived += events


def _one_comes_late(scenario: Scenario, voice: _Voice, other: _Voice, arrived: list[Event]) -> None:
    """Of two remarks the second arrives first, then one of another session, then the first: it belongs before the
    second, whatever the clocks say."""
    first, second = voice.make(2)
    _push(scenario, voice, [second], arrived)
    _push(scenario, other, other.make(1), arrived)
    late: list[Event] = []
    _push(scenario, voice, [first], late)
    arrived[arrived.index(second) : arrived.index(second)] = late


def _stands_as_it_came(scenario: Scenario, goal: str, arrived: list[Event]) -> None:
    told = _goal(scenario, goal)
    rows = checks.rows(told, "comment")
    bodies = [event["payload"]["body"] for event in arrived]
    scenario.equal("the remarks stand as they came, each session's by seq", [row["text"] for row in rows], bodies)
    scenario.equal("each with the time that was claimed", [row["at"] for row in rows], [e["at"] for e in arrived])
    by_clock = sorted(rows, key=lambda row: str(row["at"]))
    scenario.check("by the clock they would stand otherwise", by_clock != rows)
    scenario.equal("what is going on is what came last", told["current_command"], bodies[-1])
    skew = told["integrity"]["skew"]
    scenario.check("the skew is the hour", HOUR_S - SLOW_S_MAX <= skew <= HOUR_S, f"{skew} s")
    seen = {name: told["integrity"][name] for name in ("duplicates", "conflicts", "missing")}
    scenario.equal("nothing was taken for another", seen, {"duplicates": 0, "conflicts": 0, "missing": 0})
    shown = _SAID.findall(scenario.page(f"/goals/{goal}").text)
    scenario.equal("the page shows them so, the newest first", shown[-len(bodies) :], bodies[::-1])
    scenario.equal("no session is taken for silent", scenario.read("/api/fleet")["silent"], [])


def _kept_as_claimed(scenario: Scenario, voices: list[_Voice]) -> None:
    for voice in voices:
        stored = [event for event in checks.stored_rows(scenario, voice.session_id) if event["seq"] >= 0]
        seen = [(event["seq"], event["payload"], event["at"]) for event in stored]
        expected = [(seq, event["payload"], event["at"]) for seq, event in sorted(voice.said.items())]
        scenario.equal(f"the log holds all of session {voice.session_id}, unshifted", seen, expected)


def _child_stands_after_its_parent(scenario: Scenario, parent: _Voice, child: _Voice) -> None:
    task = scenario.read(f"/api/tasks/{parent.task_id}")
    opened = {session["session_id"]: session["opened_at"] for session in task["sessions"]}
    order = [parent.session_id, child.session_id]
    scenario.equal("a child stands after its parent", list(opened), order)
    older = opened[child.session_id] < opened[parent.session_id]
    scenario.check("though it is older by its clock", older, opened)
    speakers = [row["session_id"] for row in task["events"] if row["session_id"] in opened]
    scenario.equal("the parent has the first word", speakers[0], parent.session_id)
    children = scenario.read(f"/api/sessions/{parent.session_id}")["children"]
    scenario.equal("the parent knows it", children, [child.session_id])


def _the_first_end_stands(scenario: Scenario, first: _Voice, second: _Voice) -> None:
    """The end that comes first counts, though the other claims to have been two hours before it."""
    answers = first.end("done", "Right on time."), second.end("failed", "Long ago.")
    scenario.equal("both ends are taken", answers, (200, 200))
    task = scenario.read(f"/api/tasks/{first.task_id}")
    seen = (task["status"], task["summary"], len(task["attempts"]))
    scenario.equal("the end that came first stands", seen, ("done", "Right on time.", 1))


def _goal(scenario: Scenario, goal: str) -> dict[str, Any]:
    told: dict[str, Any] = scenario.read(f"/api/goals/{goal}")
    return told


def _told(goal: dict[str, Any]) -> tuple[Any, ...]:
    return goal["status"], goal["digest"], goal["events"], goal["tasks"], goal["integrity"]["skew"]
