"""Many saddles that push to one ledger through several servers while those, or the database behind them, fail.

Each sends until it is acknowledged, as an outbox does, and turns to the next server when one does not answer. What
they pushed is delivered once more to a ledger that nothing happened to, and both are compared.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from bundles import checks
from bundles.rig.saddle import Saddle
from bundles.rig.server import Server
from bundles.rig.wire import Answer, LostAnswer
from bundles.runner import Scenario

BATCH_EVENTS_MAX = 6
BETWEEN_S = 0.01  # so that readers keep up
AGAIN_S = 0.1
GOAL = "storm"

Event = dict[str, Any]


class Storm:
    """`saddles` pushers on `servers`, each with a session on a task of its own; every second task is of one goal."""

    def __init__(self, scenario: Scenario, servers: Sequence[Server], saddles: int) -> None:
        self._scenario = scenario
        self._servers = servers
        self.auditor = checks.Auditor()
        names = [f"saddle-{number}" for number in range(saddles)]
        owner = scenario.wire(servers[0].owner_token, url=lambda: servers[0].url)
        for ledger in (owner, scenario.owner):
            _must(ledger.post("/api/goals", {"id": GOAL, "title": "Through the storm"}))
            for number, name in enumerate(names):
                goal = {"goal_id": GOAL} if number % 2 else {}
                _must(ledger.post("/api/tasks", {"id": _task(name), "title": f"Work of {name}", **goal}))
        self._pushers = [self._pusher(owner, name, number) for number, name in enumerate(names)]

    def _pusher(self, owner: Any, name: str, number: int) -> _Pusher:
        token = _must(owner.post("/api/tokens", {"role": "saddle", "name": name})).json["token"]
        turn = _Turn(self._servers, number)
        saddle = Saddle(name, self._scenario.wire(token, url=turn.url))
        _must(saddle.open(_session(name), _task(name)))
        return _Pusher(saddle, turn, self.auditor, Random(self._scenario.random.getrandbits(64)))

    @contextmanager
    def raging(self) -> Iterator[None]:
        """All saddles push while the block runs. After it each has ended its session, and everything that they sent
        has been acknowledged."""
        stop = threading.Event()
        with ThreadPoolExecutor(len(self._pushers)) as pool:
            running: list[Future[None]] = [pool.submit(pusher.push_until, stop) for pusher in self._pushers]
            try:
                yield
            finally:
                stop.set()
            for pushed in running:
                pushed.result()

    def check(self, scenario: Scenario, server: Server) -> None:
        """Everything that was sent is in the log of `server` once, and it tells of it what a ledger tells that
        nothing happened to."""
        reader = scenario.wire(server.owner_token, url=lambda: server.url)
        log = checks.LogReader(reader)
        log.read_on()
        acknowledged = self.auditor.acknowledged_now()
        checks.all_acknowledged(scenario, "everything acknowledged is in the log", log, acknowledged)
        checks.exactly_sent(scenario, self.auditor, log)
        for pusher in self._pushers:
            self._deliver_again(pusher)
        told = _must(reader.get(f"/api/goals/{GOAL}")).json
        expected = _must(scenario.owner.get(f"/api/goals/{GOAL}")).json
        scenario.equal("the goal tells what an untroubled ledger tells", told["digest"], expected["digest"])
        different = [
            task
            for task in (_task(pusher.saddle.name) for pusher in self._pushers)
            if _story(reader.get(f"/api/tasks/{task}")) != _story(scenario.owner.get(f"/api/tasks/{task}"))
        ]
        scenario.equal("so does every task", different, [])
        tries = sum(pusher.tries for pusher in self._pushers)
        batches = sum(len(pusher.pushed) for pusher in self._pushers)
        scenario.check("every batch was acknowledged in the end", True, f"{batches} batches in {tries} tries")

    def _deliver_again(self, pusher: _Pusher) -> None:
        name = pusher.saddle.name
        calm = self._scenario.saddle(name)
        _must(calm.open(_session(name), _task(name)))
        events = [event for batch in pusher.pushed for event in batch]
        for start in range(0, len(events), 1000):
            _must(calm.push(_session(name), events[start : start + 1000]))


@dataclass
class _Turn:
    """Which server a saddle talks to."""

    servers: Sequence[Server]
    number: int

    def url(self) -> str:
        return self.servers[self.number % len(self.servers)].url

    def next(self) -> None:
        self.number += 1


@dataclass
class _Pusher:
    saddle: Saddle
    turn: _Turn
    auditor: checks.Auditor
    random: Random
    pushed: list[list[Event]] = field(default_factory=list)
    tries: int = 0

    def push_until(self, stop: threading.Event) -> None:
        session, seq = _session(self.saddle.name), 0
        while not stop.is_set():
            batch = [self._event(seq + n) for n in range(self.random.randint(1, BATCH_EVENTS_MAX))]
            seq += len(batch)
            self._deliver(session, batch)
            time.sleep(BETWEEN_S)
        end = {"state": "done", "summary": f"{self.saddle.name} is through"}
        self._deliver(session, [{"seq": seq, "kind": "result", "actor": "model", "payload": end}])

    def _deliver(self, session: str, batch: list[Event]) -> None:
        self.pushed.append(batch)
        self.auditor.sent(session, batch)
        while not self._taken(session, batch):
            self.turn.next()
            time.sleep(AGAIN_S)
        self.auditor.acknowledged(session, batch)

    def _taken(self, session: str, batch: list[Event]) -> bool:
        """One try. Only 503 and no answer at all mean that it is to be sent again."""
        self.tries += 1
        try:
            answer = self.saddle.push(session, batch)
        except LostAnswer:
            return False
        if answer.status not in (200, 503):
            raise AssertionError(f"a good push was refused: {answer}")
        return bool(answer.status == 200)

    def _event(self, seq: int) -> Event:
        kind, payload = self.random.choice(
            [
                ("comment", {"body": f"{self.saddle.name} says {seq}"}),
                ("tool_call", {"tool": "run_command", "args": {"command": f"make step-{seq}"}}),
                ("message", {"role": "assistant", "text": f"step {seq}"}),
                ("error", {"message": f"step {seq} failed"}),
            ]
        )
        return {"seq": seq, "kind": kind, "actor": "model", "payload": payload}


def _session(saddle: str) -> str:
    return f"session-of-{saddle}"


def _task(saddle: str) -> str:
    return f"task-of-{saddle}"


def _story(answer: Answer) -> tuple[str, str]:
    told = _must(answer).json
    return told["status"], told["digest"]


def _must(answer: Answer) -> Answer:
    if answer.status not in (200, 201):
        raise AssertionError(str(answer))
    return answer
