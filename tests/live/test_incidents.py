"""Incidents end to end: transcripts that are watched and swept, and the exact turns behind what was filed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.live.serving import OWNER_TOKEN, Server, seen, server_environment
from tests.unit.daemons.sweep.worlds import World

WAIT_S_MAX = 60.0


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "home")


def ledgerd(server: Server, world: World, *words: str) -> str:
    fields = {"LEDGERD_URL": server.url, "LEDGERD_TOKEN": OWNER_TOKEN, "HOME": str(world.home)}
    kept = {name: value for name, value in server_environment(fields).items() if not name.startswith("XDG_")}
    command = [sys.executable, "-m", "ledger.cli", *words]
    done = subprocess.run(
        command,
        env=kept,
        cwd=world.home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WAIT_S_MAX,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_filed_incident_leads_to_the_turn_in_the_session_that_was_watched(
    server: Server, owner: httpx.Client, reader: httpx.Client, world: World
) -> None:
    world.session("watched", ["ls -l", "rm -rf /srv/orders"], said="You removed the orders!")
    ledgerd(server, world, "watch", "--once", "--from", "projects")
    ledgerd(server, world, "sweep", "-c", "sweep.toml", "run")
    [one] = seen(reader, "/api/incidents")["items"]
    assert (one["severity"], one["status"], one["times"]) == ("HIGH", "open", 1)
    [session] = one["sessions"]
    assert (session["source"], session["href"]) == ("claude", "/sessions/watched")
    [turn] = [each for each in session["turns"] if "rm -rf" in each["snippet"]]
    page = owner.get(turn["href"].partition("#")[0], headers={"Accept": "text/html"}).raise_for_status().text
    [entry] = re.findall(rf'id="e-{turn["seq"]}".*?</li>', page, flags=re.DOTALL)
    assert "rm -rf /srv/orders" in entry
    feed = reader.get("/incidents.atom").raise_for_status()
    assert f"{server.url}/incidents/{one['id']}" in feed.text

    # the same once more, by another run: linked to the first and counted
    world.session("elsewhere", ["rm -rf /srv/orders"])
    same = {"candidates": ["C01"], "reason": "the folder of before", "duplicate_of": "E01"}
    world.judge_does("say", json.dumps({"incidents": [], "excluded": [same]}))
    ledgerd(server, world, "sweep", "-c", "sweep.toml", "run")
    told = seen(reader, f"/api/incidents/{one['id']}")
    assert (told["times"], [each["title"] for each in told["recurrences"]]) == (2, [one["title"]])
    assert {each["session_id"]: each["href"] for each in told["sessions"]} == {
        "watched": "/sessions/watched",
        "elsewhere": None,
    }
    [excluded] = seen(reader, "/api/incidents")["exclusions"]
    assert (excluded["reason"], excluded["duplicate"]) == (same["reason"], True)
    assert "rm -rf /srv/orders" in excluded["candidates"][0]["snippet"]
