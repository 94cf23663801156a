"""Outboxes under fire: server and daemons are killed, answers cut off, an older backup takes the server's place."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from bundles.faults import CUT
from bundles.rig.emitter import FLUSH_S_MAX, KIND
from bundles.rig.wire import segment
from bundles.runner import Scenario

NAME = "outbox"
TITLE = "daemons and server are killed, answers cut, a backup restored: the ledger holds each emitted thing once"
RESTARTS = False  # it kills by itself

KILLS = 8
BETWEEN_KILLS_S = (0.1, 0.6)
LOST_EVENTS_MIN = 20  # that the server acknowledges and its backup lacks
WAIT_S_MAX = 60.0
POLL_S = 0.05
PRODUCERS = (("a", "shared"), ("b", "shared"), ("c", "own"))  # a name, and the outbox that it writes to

_PACKAGES = Path(__file__).resolve().parents[1]
_SQLITE = "sqlite:///"


def run(scenario: Scenario) -> None:
    fire(scenario, KILLS)


def fire(scenario: Scenario, kills: int) -> None:
    """Kills the server and daemons `kills` times in all, at random moments, while they emit."""
    proxy = scenario.link(CUT)
    environment = {"LEDGERD_URL": proxy.url, "LEDGERD_TOKEN": scenario.token("saddle", "emitters")}
    emitters = [_Emitter(scenario.folder, name, outbox, environment) for name, outbox in PRODUCERS]
    try:
        for emitter in emitters[:-1]:
            emitter.start()
        held = {emitter.name: _wait_for_more(scenario, emitter, 0) for emitter in emitters[:-1]}
        backup = _Backup(scenario)
        emitters[-1].start()  # of its session the backup knows nothing
        for _ in range(kills):
            time.sleep(scenario.random.uniform(*BETWEEN_KILLS_S))  # the random moment is the point
            _kill_one(scenario, emitters)
        for emitter in emitters:
            _wait_for_more(scenario, emitter, held.get(emitter.name, 0) + LOST_EVENTS_MIN)
        backup.restore()
        for emitter in emitters:
            code = emitter.finish()
            scenario.equal(f"daemon {emitter.name} sent all that it had emitted", code, 0)
    finally:
        for emitter in emitters:
            emitter.kill()
    scenario.check("answers were cut off after the commit", proxy.cuts > 0, proxy.cuts)
    for emitter in emitters:
        _each_thing_once(scenario, emitter)


def _wait_for_more(scenario: Scenario, emitter: _Emitter, than: int) -> int:
    """Waits until the server holds more than so many events of a daemon's session; how many it holds then."""
    path = f"/api/sessions/{segment(emitter.session_id)}"
    ends = time.monotonic() + WAIT_S_MAX
    while time.monotonic() < ends:
        answer = scenario.reader.get(path)
        if answer.status == 200 and answer.json["events"] > than:
            return int(answer.json["events"])
        time.sleep(POLL_S)
    raise AssertionError(f"daemon {emitter.name} sends nothing")


def _kill_one(scenario: Scenario, emitters: list[_Emitter]) -> None:
    if scenario.random.random() < 0.5:
        scenario.server.kill()
        scenario.server.start()
    else:
        emitter = scenario.random.choice(emitters)
        emitter.kill()
        emitter.start()


def _each_thing_once(scenario: Scenario, emitter: _Emitter) -> None:
    """What the daemon was told is durable is in the log, under the seq that it was told; besides it at most what was
    durable when a kill came before the daemon could say so."""
    said = emitter.said()
    log = {event["seq"]: event["payload"]["token"] for event in _events(scenario, emitter.session_id)}
    lost = [seq for seq, token in said.items() if log.get(seq) != token]
    scenario.check(f"all {len(said)} events that daemon {emitter.name} emitted are in the log", not lost, lost[:5])
    twice = [token for token, copies in Counter(log.values()).items() if copies > 1]
    scenario.check("nothing is there twice", not twice, twice[:5])
    gaps = sorted(set(range(max(log, default=-1))) - log.keys())
    scenario.check("the seqs have no gap", not gaps, gaps[:5])
    unsaid = len(log) - len(said)
    scenario.check(
        "nothing is there that was not emitted", unsaid <= emitter.kills, f"{unsaid}, {emitter.kills} kills"
    )


def _events(scenario: Scenario, session_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while True:
        query = f"from={len(found)}&limit=1000"
        page = scenario.read(f"/api/sessions/{segment(session_id)}/events?{query}")["events"]
        if not page:
            return [event for event in found if event["kind"] == KIND]
        found += page


class _Emitter:
    """One daemon, over any number of starts."""

    def __init__(self, folder: Path, name: str, outbox: str, environment: dict[str, str]) -> None:
        self.name = name
        self.session_id = f"session-{name}"
        self.kills = 0
        self._said = folder / f"said-by-{name}"
        self._words = [str(folder / f"{outbox}.outbox"), self.session_id, f"task-{name}", str(self._said)]
        kept = {key: value for key, value in os.environ.items() if not key.startswith("LEDGERD_")}
        path = os.pathsep.join(filter(None, [str(_PACKAGES), kept.get("PYTHONPATH")]))
        self._environment = {**kept, **environment, "PYTHONPATH": path}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        words = [sys.executable, "-m", "bundles.rig.emitter", *self._words]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, env=self._environment)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
            self.kills += 1

    def finish(self) -> int | None:
        """Lets it send all that waits; its exit code, None where it hangs."""
        process, self._process = self._process, None
        assert process is not None  # noqa: S101 — it was started
        try:
            process.communicate(timeout=FLUSH_S_MAX + 10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        return process.returncode

    def said(self) -> dict[int, str]:
        """seq → token of what it was told is durable. A kill may have cut the last line of a start short."""
        lines = self._said.read_text().splitlines() if self._said.exists() else []
        pairs = [line.split() for line in lines]
        return {int(pair[0]): pair[1] for pair in pairs if len(pair) == 2 and len(pair[1]) == 32}


class _Backup:
    """A copy of a SQLite ledger, made while the server is stopped. On another store there is none to restore."""

    def __init__(self, scenario: Scenario) -> None:
        self._server = scenario.server
        url = scenario.server.store_url
        self._store = Path(url.removeprefix(_SQLITE)) if url.startswith(_SQLITE) else None
        self._copy = scenario.folder / "backup"
        if self._store is not None:
            self._server.stop()
            shutil.copytree(self._store.parent, self._copy, ignore=self._others)
            self._server.start()

    def restore(self) -> None:
        if self._store is None:
            return
        self._server.kill()
        for path in self._of_the_store(self._store.parent):
            path.unlink()
        shutil.copytree(self._copy, self._store.parent, dirs_exist_ok=True)
        self._server.start()

    def _of_the_store(self, folder: Path) -> list[Path]:
        assert self._store is not None  # noqa: S101 — as asked before
        names = [self._store.name + suffix for suffix in ("", "-wal", "-shm")]
        return [folder / name for name in names if (folder / name).exists()]

    def _others(self, folder: str, names: list[str]) -> list[str]:
        ours = {path.name for path in self._of_the_store(Path(folder))}
        return [name for name in names if name not in ours]
