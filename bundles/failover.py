"""The database's machine goes while 16 saddles push: its synchronous standby takes over, and nothing is missing."""

from __future__ import annotations

import time

from bundles.rig.postgres import QUICK, Postgres, url_of
from bundles.rig.server import Server, ServerFailed
from bundles.rig.storm import Storm
from bundles.runner import Scenario

NAME = "failover"
TITLE = (
    "a PostgreSQL primary is killed and its standby promoted: nothing acknowledged is lost, nothing is there twice"
)
RESTARTS = False

SADDLES = 16
BEFORE_S, AFTER_S = 1.5, 1.5


def run(scenario: Scenario) -> None:
    primary = scenario.held(Postgres(QUICK))
    standby = scenario.held(Postgres(QUICK))
    _pair(primary, standby)
    store = url_of(primary, standby, buckets="8")
    server = scenario.serve(store, "server")
    _refused_by_the_standby(scenario, standby)
    storm = Storm(scenario, [server], SADDLES)
    with storm.raging():
        time.sleep(BEFORE_S)
        primary.kill()
        acknowledged = len(storm.auditor.acknowledged_now())
        standby.promote()
        time.sleep(AFTER_S)
    more = len(storm.auditor.acknowledged_now()) - acknowledged
    scenario.check("the same server goes on at the standby", more > 0, f"{acknowledged} before, {more} after")
    storm.check(scenario, server)
    verified = server.command("verify")
    scenario.check("every seal holds", verified.returncode == 0, (verified.stdout + verified.stderr).strip()[:200])


def _pair(primary: Postgres, standby: Postgres) -> None:
    """A primary that acknowledges nothing before its standby has it."""
    primary.make()
    standby.copy(primary)
    primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
    primary.sql("SELECT pg_reload_conf()")
    deadline = time.monotonic() + 10
    while primary.sql("SELECT sync_state FROM pg_stat_replication") != "sync":
        if time.monotonic() > deadline:
            raise AssertionError(f"the standby is not synchronous\n{standby.log_tail()}")
        time.sleep(0.05)


def _refused_by_the_standby(scenario: Scenario, standby: Postgres) -> None:
    try:
        server: Server | None = scenario.serve(standby.url(), "refused")
        said = "it started"
    except ServerFailed as error:
        server, said = None, str(error)
    scenario.check("a server on the standby alone is refused", server is None and "takes no writes" in said, said)
