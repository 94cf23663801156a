"""Two servers on one ledger: work is handed out once, and one of them is killed under load."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from bundles.rig.postgres import QUICK, Postgres
from bundles.rig.saddle import Saddle
from bundles.rig.server import Server
from bundles.rig.storm import Storm
from bundles.rig.wire import Wire
from bundles.runner import Scenario

NAME = "two_servers"
TITLE = "of two servers on one ledger one is killed under load: the other goes on, and no work was handed out twice"
RESTARTS = False

SADDLES = 16
TASKS, ASKERS = 20, 8
BEFORE_S, AFTER_S = 1.0, 1.0


def run(scenario: Scenario) -> None:
    postgres = scenario.held(Postgres(QUICK))
    postgres.make()
    servers = [scenario.serve(postgres.url(buckets="8"), f"server-{number}") for number in (1, 2)]
    _each_task_is_handed_out_once(scenario, servers)
    storm = Storm(scenario, servers, SADDLES)
    with storm.raging():
        time.sleep(BEFORE_S)
        servers[0].kill()
        acknowledged = len(storm.auditor.acknowledged_now())
        time.sleep(AFTER_S)
    more = len(storm.auditor.acknowledged_now()) - acknowledged
    scenario.check("the other server goes on", more > 0, f"{acknowledged} before, {more} after")
    storm.check(scenario, servers[1])
    verified = servers[1].command("verify")
    scenario.check("every seal holds", verified.returncode == 0, (verified.stdout + verified.stderr).strip()[:200])


def _each_task_is_handed_out_once(scenario: Scenario, servers: list[Server]) -> None:
    askers = [_asker(scenario, servers[number % 2], number) for number in range(ASKERS)]
    for number in range(TASKS):
        owner = _wire(scenario, servers[number % 2], scenario.server.owner_token)
        answer = owner.post("/api/tasks", {"title": f"Queued {number}"})
        if answer.status != 201:
            raise AssertionError(str(answer))
    with ThreadPoolExecutor(ASKERS) as pool:
        given = [task for tasks in pool.map(_ask_until_nothing_is_left, askers) for task in tasks]
    scenario.equal("each queued task is handed out once, whichever server is asked", len(given), len(set(given)))
    scenario.equal("and none is left over", len(set(given)), TASKS)


def _ask_until_nothing_is_left(saddle: Saddle) -> list[str]:
    given = []
    while work := saddle.ask():
        given.append(work.task_id)
    return given


def _asker(scenario: Scenario, server: Server, number: int) -> Saddle:
    name = f"asker-{number}"
    owner = _wire(scenario, server, server.owner_token)
    token = owner.post("/api/tokens", {"role": "saddle", "name": name}).json["token"]
    return Saddle(name, _wire(scenario, server, token))


def _wire(scenario: Scenario, server: Server, token: str) -> Wire:
    return scenario.wire(token, url=lambda: server.url)
