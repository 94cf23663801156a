"""PostgreSQL stands still and connections are cut, at random, while saddles push through two servers."""

from __future__ import annotations

import time

from bundles.rig.postgres import QUICK, Postgres
from bundles.rig.storm import Storm
from bundles.runner import Scenario

NAME = "pauses"
TITLE = "PostgreSQL is paused and connections are cut at random: nothing is lost, nothing is there twice"
RESTARTS = False

SADDLES = 8
FAULTS = 7
BETWEEN_S = (0.1, 0.5)
PAUSE_S = (0.1, 0.8)
_CUT = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'ledgerd'"


def run(scenario: Scenario) -> None:
    postgres = scenario.held(Postgres(QUICK))
    postgres.make()
    servers = [scenario.serve(postgres.url(buckets="4"), f"server-{number}") for number in (1, 2)]
    storm = Storm(scenario, servers, SADDLES)
    cut = 0
    with storm.raging():
        for _ in range(FAULTS):
            time.sleep(scenario.random.uniform(*BETWEEN_S))  # the random moment is the point
            if scenario.random.random() < 0.5:
                postgres.pause()
                time.sleep(scenario.random.uniform(*PAUSE_S))
                postgres.go_on()
            else:
                cut += int(postgres.sql(_CUT))
        cut += int(postgres.sql(_CUT))
    scenario.check("connections were cut", cut > 0, cut)
    storm.check(scenario, servers[1])
    verified = servers[0].command("verify")
    scenario.check("every seal holds", verified.returncode == 0, (verified.stdout + verified.stderr).strip()[:200])
