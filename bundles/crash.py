"""SIGKILL while 16 saddles push: after restart and redelivery the log holds exactly what was sent."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random
from typing import Any

from bundles import checks
from bundles.rig.saddle import Saddle
from bundles.rig.server import Server
from bundles.rig.wire import LostAnswer
from bundles.runner import Scenario

NAME = "crash"
TITLE = "killed while 16 saddles push: nothing acknowledged is lost, nothing is there twice"
RESTARTS = False  # it kills by itself

SADDLES = 16
KILLS = 4
BATCH_EVENTS_MAX = 8
BETWEEN_KILLS_S = (0.05, 0.5)
BETWEEN_PUSHES_S = 0.01  # so that a server that starts finds time, and the readers keep up

Event = dict[str, Any]


def run(scenario: Scenario) -> None:
    crash(scenario, KILLS)


def crash(scenario: Scenario, kills: int) -> None:
    """Kills and restarts the server `kills` times, at random moments, under 16 pushers."""
    auditor = checks.Auditor()
    pushers = [_Pusher(scenario.server, _seat(scenario, n), auditor, _seed(scenario)) for n in range(SADDLES)]
    log = checks.LogReader(scenario.reader)
    stop = threading.Event()
    with ThreadPoolExecutor(SADDLES) as pool:
        running = [pool.submit(pusher.push_until, stop) for pusher in pushers]
        try:
            for number in range(1, kills + 1):
                time.sleep(scenario.random.uniform(*BETWEEN_KILLS_S))  # the random moment is the point
                scenario.server.kill()
                acknowledged = auditor.acknowledged_now()
                scenario.server.start()
                log.read_on()
                sentence = f"after kill {number} everything acknowledged is in the log"
                checks.all_acknowledged(scenario, sentence, log, acknowledged)
        finally:
            stop.set()
        for pushed in running:
            pushed.result()
    _redeliver(scenario, pushers, auditor)
    whole = checks.LogReader(scenario.reader)
    whole.read_on()
    checks.exactly_sent(scenario, auditor, whole)
    checks.seals_hold(scenario, "every seal holds, also those of the last transaction before each kill")


@dataclass
class _Pusher:
    """One saddle that pushes batch after batch; what it was not answered it keeps for the redelivery, or sends
    again at once."""

    server: Server
    saddle: Saddle
    auditor: checks.Auditor
    random: Random
    pushed: list[list[Event]] = field(default_factory=list)

    @property
    def session_id(self) -> str:
        return f"session-of-{self.saddle.name}"

    def push_until(self, stop: threading.Event) -> None:
        seq = 0
        while not stop.wait(BETWEEN_PUSHES_S):
            batch = self._batch(seq)
            seq += len(batch)
            self.pushed.append(batch)
            self.auditor.sent(self.session_id, batch)
            if not self.deliver(batch) and self.random.random() < 0.5:
                self.deliver(batch)

    def deliver(self, batch: list[Event]) -> bool:
        """One try; True where it was acknowledged. Waits for the server where it is down."""
        self.server.wait_until_up()
        try:
            answer = self.saddle.push(self.session_id, batch)
        except LostAnswer:
            return False
        if answer.status != 200:
            raise AssertionError(f"a good chunk was refused: {answer}")
        self.auditor.acknowledged(self.session_id, batch)
        return True

    def _batch(self, seq: int) -> list[Event]:
        return [
            {"seq": seq + n, "kind": "note", "actor": "model", "payload": {"by": self.saddle.name, "n": seq + n}}
            for n in range(self.random.randint(1, BATCH_EVENTS_MAX))
        ]


def _seat(scenario: Scenario, number: int) -> Saddle:
    saddle = scenario.saddle(f"saddle-{number}")
    task = scenario.create("tasks", title=f"Work of {saddle.name}")
    saddle.open(f"session-of-{saddle.name}", task)
    return saddle


def _seed(scenario: Scenario) -> Random:
    return Random(scenario.random.getrandbits(64))


def _redeliver(scenario: Scenario, pushers: list[_Pusher], auditor: checks.Auditor) -> None:
    """Everything once more, merged and in another order, as a sender does that lost its memory of receipts."""
    stored = 0
    acknowledged = auditor.acknowledged_now()
    for pusher in pushers:
        events = [event for batch in pusher.pushed for event in batch]
        scenario.random.shuffle(events)
        for start in range(0, len(events), 1000):
            receipt = pusher.saddle.push(pusher.session_id, events[start : start + 1000]).json
            stored += receipt["stored"]
    unanswered = len(auditor.sent_now()) - len(acknowledged)
    sentence = "redelivery stores at most what was never acknowledged"
    scenario.check(sentence, stored <= unanswered, f"stored {stored}, unanswered {unanswered}")
