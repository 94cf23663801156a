"""Servers on PostgreSQL: several in front of one ledger, the recorded stories, moving there and back."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import SystemRandom
from statistics import median
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from bundles import replaying
from bundles.faults import VARIANTS
from bundles.rig.deadline import Deadline
from bundles.rig.server import Server
from bundles.runner import discover
from bundles.runner import run as run_scenario
from ledger.cli import main
from tests.live.serving import event, push
from tests.postgres import TestLedgers

TOKEN = "an-owner-token-of-the-tests"
SEEN_S_MAX = 0.3
TRIED = ("plain", "everything at once")


@contextmanager
def serving(url: str, folder: Path, **how: Any) -> Iterator[Server]:
    folder.mkdir(exist_ok=True)
    server = Server(url, folder, Deadline(60), owner_token=TOKEN, **how)
    server.start()
    try:
        yield server
    finally:
        server.close()


@contextmanager
def owner_of(server: Server) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=server.url, headers=headers, timeout=20, trust_env=False) as client:
        yield client


def ledgerd(*words: str, **environment: str) -> Result:
    return CliRunner().invoke(main, list(words), env={"LEDGERD_OWNER_TOKEN": TOKEN, **environment})


def store_of_runs(postgres: TestLedgers) -> str:
    return postgres.url + ("&" if "?" in postgres.url else "?") + "schema={run}&buckets=4"


@pytest.mark.parametrize("name", TRIED)
@pytest.mark.parametrize("path", replaying.recorded(), ids=lambda path: str(path.stem))
def test_a_recorded_bundle_tells_the_same_story_as_on_sqlite(postgres: TestLedgers, path: Path, name: str) -> None:
    [variant] = [variant for variant in VARIANTS if variant.name == name]
    report = replaying.replay(path, variant, store=store_of_runs(postgres), seed=SystemRandom().getrandbits(32))
    assert report.verdict == "ok", "\n".join(report.lines())


@pytest.mark.parametrize("name", ["replay", "races", "terminal"])
def test_a_scenario_is_green_on_postgres(postgres: TestLedgers, name: str) -> None:
    [entry] = [entry for entry in discover() if entry.name == name]
    report = run_scenario(entry, store=store_of_runs(postgres), seed=SystemRandom().getrandbits(32))
    assert report.verdict == "ok", "\n".join(report.lines())


def test_what_one_server_takes_in_another_shows_within_300_ms(postgres: TestLedgers, tmp_path: Path) -> None:
    url = postgres.fresh(buckets=4)
    with (
        serving(url, tmp_path / "one") as one,
        serving(url, tmp_path / "other") as other,
        owner_of(one) as writer,
        owner_of(other) as reader,
    ):
        opening = {"session_id": "s", "task": {"id": "t", "title": "Seen from afar"}}
        assert writer.post("/api/saddle/sessions", json=opening).status_code == 201
        page = {"Accept": "text/html"}
        assert reader.get("/tasks/t", headers=page).status_code == 200
        waits_s, reads_s = [], []  # that the page is read takes time too: how much depends on how busy the machine is
        with reader.stream("GET", "/api/live", params={"root": "task/t"}) as live:
            lines = live.iter_lines()
            assert next(lines) == "event: hello"
            for seq in range(8):
                push(writer, "s", [event(seq, "comment", {"body": f"remark {seq}"})])
                pushed = time.monotonic()
                assert any(line == "event: moved" for line in lines)
                with owner_of(other) as visitor:
                    assert f"remark {seq}" in visitor.get("/tasks/t", headers=page).text
                waits_s.append(time.monotonic() - pushed)
                with owner_of(other) as visitor:
                    visitor.get("/tasks/t", headers=page)
                reads_s.append(time.monotonic() - pushed - waits_s[-1])
        assert median(waits_s) < SEEN_S_MAX + median(reads_s), (waits_s, reads_s)


def test_a_token_made_at_one_server_is_good_at_another_at_once(postgres: TestLedgers, tmp_path: Path) -> None:
    url = postgres.fresh(buckets=1)
    with (
        serving(url, tmp_path / "one") as one,
        serving(url, tmp_path / "other") as other,
        owner_of(one) as owner,
        owner_of(other) as elsewhere,
    ):
        for number in range(3):
            token = owner.post("/api/tokens", json={"role": "reader", "name": f"r{number}"}).json()["token"]
            answer = elsewhere.get("/api/goals", headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == 200
            assert elsewhere.get("/api/goals", headers={"Authorization": "Bearer nonsense"}).status_code == 401


def test_workers_serve_one_ledger_from_one_address(postgres: TestLedgers, tmp_path: Path) -> None:
    with serving(postgres.fresh(buckets=4), tmp_path / "server", workers=3) as server:
        stored = 0
        for number in range(12):  # each on a connection of its own, so that several workers take part
            with owner_of(server) as owner:
                opening = {"task": {"id": f"t{number}", "title": "Shared"}}
                stored += push(owner, f"s{number}", [event(0), event(1)], open=opening)["stored"]
        with owner_of(server) as owner:
            listed = owner.get("/api/tasks", params={"limit": 50}).json()["items"]
        assert (stored, len(listed)) == (24, 12)
        server.stop()  # raises unless it ends with 0


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def ends(pids: list[int]) -> bool:
    """Whether all of them end in a while."""
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize("killed", ["the parent", "a worker"])
def test_workers_end_together(postgres: TestLedgers, tmp_path: Path, killed: str) -> None:
    with serving(postgres.fresh(buckets=1), tmp_path / "server", workers=2) as server:
        workers = children(server.pid)
        assert len(workers) == 2
        os.kill(server.pid if killed == "the parent" else workers[0], signal.SIGKILL)
        assert ends(workers[1:])
        assert server.wait() != 0


def test_workers_take_postgres(tmp_path: Path) -> None:
    refused = ledgerd("serve", "--workers", "2", "--store", f"sqlite:///{tmp_path}/ledger.db", "--port", "0")
    assert refused.exit_code == 1
    assert "one process" in refused.output


def test_what_is_wrong_with_a_store_is_one_sentence_and_exit_code_1(postgres: TestLedgers) -> None:
    made = postgres.fresh(buckets=2)
    assert (
        ledgerd("import", "ledger", "-", "--store", made).exit_code == 1
    )  # an empty file is no export, but founds it
    wrong = {
        "postgresql://postgres@127.0.0.1:1/postgres": "127.0.0.1:1",
        "mysql://127.0.0.1/ledger": "no store",
        made.replace("buckets=2", "buckets=5"): "2 buckets, not with 5",
        made + "&default_transaction_read_only=on": "takes no writes",
    }
    for url, sentence in wrong.items():
        refused = ledgerd("serve", "--store", url, "--port", "0")
        assert (refused.exit_code, refused.output.count("error: ")) == (1, 1), refused.output
        assert sentence in refused.output
        assert "Traceback" not in refused.output


def test_a_store_without_a_file_needs_an_owner_token(postgres: TestLedgers) -> None:
    refused = ledgerd("serve", "--store", postgres.fresh(), "--port", "0", LEDGERD_OWNER_TOKEN="")
    assert refused.exit_code == 1
    assert "LEDGERD_OWNER_TOKEN" in refused.output


def test_a_ledger_moves_to_postgres_and_back_and_tells_the_same(postgres: TestLedgers, tmp_path: Path) -> None:
    first, second, there = tmp_path / "first.db", tmp_path / "second.db", postgres.fresh(buckets=4)
    sqlite = f"sqlite:///{first}"
    with serving(sqlite, tmp_path / "server") as server, owner_of(server) as owner:
        for number in range(6):
            push(owner, f"s{number}", [event(0), event(1)], open={"task": {"title": f"Task {number}"}})
        owner.post("/api/goals", json={"title": "A goal"})
        told = owner.get("/api/tasks/3").json()["digest"]
        copied = ledgerd("copy", "--from", sqlite, "--to", there, "--json")  # while the server runs
        assert copied.exit_code == 0, copied.output
        push(owner, "s1", [event(2)])
    again = ledgerd("copy", "--from", sqlite, "--to", there, "--json")
    assert json.loads(again.stdout)["imported"]["stored"] == 1
    with serving(there, tmp_path / "moved") as server, owner_of(server) as owner:
        assert owner.get("/api/tasks/3").json()["digest"] == told
        assert push(owner, "s1", [event(1), event(2), event(3)])["duplicates"] == 2
    back = ledgerd("copy", "--from", there, "--to", f"sqlite:///{second}")
    assert back.exit_code == 0, back.output
    assert "tell the same in both" in back.output
    assert ledgerd("verify", "--store", f"sqlite:///{second}").exit_code == 0


def test_a_backup_is_restored_and_verified(postgres: TestLedgers, tmp_path: Path) -> None:
    sqlite, there = f"sqlite:///{tmp_path}/ledger.db", postgres.fresh(buckets=2)
    for url, restored in [(sqlite, f"sqlite:///{tmp_path}/restored.db"), (there, postgres.fresh())]:
        file = str(tmp_path / "backup")
        with serving(url, tmp_path / "server") as server, owner_of(server) as owner:
            push(owner, "s", [event(0)], open={"task": {"title": "Kept"}})
            assert ledgerd("backup", file, "--store", url).exit_code == 0
        done = ledgerd("restore", file, "--store", restored)
        assert done.exit_code == 0, done.output
        assert "all as they were sealed" in done.output
        assert ledgerd("restore", file, "--store", restored).exit_code == 1


def test_the_schema_is_printed_with_what_distributes_it(postgres: TestLedgers) -> None:
    plain = ledgerd("schema", "--store", "postgresql://h/db?schema=mine").output
    assert "SET search_path TO mine;" in plain
    assert "create_distributed_table" not in plain
    citus = ledgerd("schema", "--store", "postgresql://h/db", "--citus").output
    tables = [line.split()[2] for line in plain.splitlines() if line.startswith("CREATE TABLE")]
    assert all(f"create_distributed_table('{table}', 'bucket'" in citus for table in tables)
    assert "YugabyteDB" in plain
    assert ledgerd("schema", "--store", "sqlite:///x.db", "--citus").exit_code == 1
