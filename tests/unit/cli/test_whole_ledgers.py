"""export, import ledger, verify and schema, over SQLite files."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from ledger.events.content import content_digest
from ledger.events.model import NewEvent, Recorded
from ledger.store.base import Opening, Write
from ledger.store.sqlite import SqliteStore

Run = Callable[..., Result]


def event(seq: int, payload: bytes) -> NewEvent:
    return NewEvent(seq, "message", "model", payload, content_digest("message", "model", payload))


async def fill(path: Path, text: bytes = b'"first"') -> None:
    store = await SqliteStore.open(path)
    for seq in range(3):
        await store.append([Write("s1", [event(seq, text)], Opening("task/1", "1", "alpha"))])
    await store.append([Write("s1", [event(0, b'"other"')])])
    await store.close()


async def feed(path: Path) -> list[Recorded]:
    store = await SqliteStore.open(path, read_only=True)
    events = await store.read_feed((0,))
    await store.close()
    return events


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small ledger, and the one that LEDGERD_STORE names."""
    path = tmp_path / "ledger.db"
    asyncio.run(fill(path))
    monkeypatch.setenv("LEDGERD_STORE", f"sqlite:///{path}")
    return path


def test_a_ledger_goes_through_a_file_into_another_store(run: Run, store: Path) -> None:
    exported = run("export", "out.ndjson")
    assert exported.exit_code == 0, exported.output
    assert "3 events of 1 streams and 1 conflicts" in exported.stderr

    imported = run("import", "ledger", "out.ndjson", "--store", "sqlite:///copy.db")
    assert imported.exit_code == 0, imported.output
    assert imported.stdout.startswith("3 events stored, 0 were there already")
    assert asyncio.run(feed(Path("copy.db"))) == asyncio.run(feed(store))

    again = run("import", "ledger", "out.ndjson", "--store", "sqlite:///copy.db", "--json")
    assert json.loads(again.stdout) == {"stored": 0, "duplicates": 3, "losers": 1, "conflicts": []}


def test_a_dash_is_standard_output_and_standard_input(run: Run, store: Path) -> None:
    lines = run("export", "-").stdout_bytes
    assert len(lines.splitlines()) == 7
    imported = run("import", "ledger", "-", "--store", "sqlite:///copy.db", input=lines)
    assert imported.exit_code == 0, imported.output


def test_an_import_that_meets_other_content_names_it_and_exits_with_1(run: Run, store: Path, tmp_path: Path) -> None:
    asyncio.run(fill(tmp_path / "other.db", b'"something else"'))
    run("export", "out.ndjson")
    result = run("import", "ledger", "out.ndjson", "--store", "sqlite:///other.db")
    assert result.exit_code == 1
    assert "conflict: session s1, seq 2" in result.stderr


def test_a_file_that_is_cut_short_is_named_by_line(run: Run, store: Path, tmp_path: Path) -> None:
    run("export", "out.ndjson")
    whole = (tmp_path / "out.ndjson").read_bytes()
    (tmp_path / "out.ndjson").write_bytes(whole[: len(whole) // 2])
    result = run("import", "ledger", "out.ndjson", "--store", "sqlite:///copy.db")
    assert result.exit_code == 1
    assert "error: line " in result.stderr


def test_an_export_that_fails_leaves_no_half_file(run: Run, tmp_path: Path) -> None:
    result = run("export", "out.ndjson", "--store", "sqlite:///missing.db")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert not (tmp_path / "out.ndjson").exists()


def test_a_ledger_as_it_was_sealed_is_verified_and_its_seal_holds_later(run: Run, store: Path) -> None:
    verified = run("verify")
    assert verified.exit_code == 0, verified.output
    counted, seal = verified.stdout.splitlines()
    assert counted == "3 events in 3 transactions, all as they were sealed"
    assert run("verify", "--expect", seal.split()[1]).exit_code == 0


def test_a_seal_that_does_not_occur_is_damage(run: Run, store: Path) -> None:
    result = run("verify", "--expect", "00" * 32)
    assert result.exit_code == 1
    assert "does not occur" in result.stderr


def test_a_row_that_was_changed_is_found(run: Run, store: Path) -> None:
    with sqlite3.connect(store) as db:
        db.execute("UPDATE events SET payload = ? WHERE position = 2", (b'"forged"',))
    db.close()
    result = run("verify")
    assert result.exit_code == 1
    assert "error: seal 2: " in result.stderr
    verdict = json.loads(run("verify", "--json").stdout)
    assert (verdict["ok"], verdict["seal"], verdict["first"]) == (False, 2, 2)


def test_the_schema_that_is_printed_makes_the_tables(run: Run) -> None:
    db = sqlite3.connect(":memory:")
    db.executescript(run("schema").stdout)
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_schema")}
    db.close()
    assert {"events", "streams", "losers", "seals"} <= tables
