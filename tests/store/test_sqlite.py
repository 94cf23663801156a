from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path

import pytest

from ledger.errors import StorageError, StorageFull, StoreLocked, StoreMismatch
from ledger.events.model import NewEvent
from ledger.store.base import Checkpoint, Store, Token
from ledger.store.sqlite import SqliteStore
from ledger.store.verifying import verify
from tests.store.building import Clock, event, events, keys, opening, push, whole_feed
from tests.store.suite import *  # noqa: F403


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def make_store(tmp_path: Path, clock: Clock) -> Callable[[], Awaitable[Store]]:
    numbers = count()

    async def make() -> Store:
        return await SqliteStore.open(tmp_path / f"ledger-{next(numbers)}.db", clock=clock)

    return make


def change(path: Path, sql: str, *values: object) -> None:
    """Changes the file behind the store's back."""
    db = sqlite3.connect(path)
    try:
        with db:
            assert db.execute(sql, values).rowcount > 0
    finally:
        db.close()


async def test_a_file_that_is_opened_again_holds_all_that_was_acknowledged(path: Path, clock: Clock) -> None:
    store = await SqliteStore.open(path, clock=clock)
    await push(store, "s", *events(0, 3), opening=opening())
    await push(store, "s", event(0), event(3, '"x"'))
    token = Token("a", "owner", "owner", b"\x01" * 32, created_at=1)
    await store.put_token(token)
    await store.save_checkpoint("task/1", Checkpoint("v1", 3, b"state"))
    kept = await reading_of(store)
    await store.close()

    store = await SqliteStore.open(path, clock=clock)
    assert await reading_of(store) == kept
    assert await store.tokens() == [token]
    assert await store.load_checkpoint("task/1", "v1") == Checkpoint("v1", 3, b"state")
    await store.close()


async def reading_of(store: Store) -> list[object]:
    return [
        store.ledger_id,
        await whole_feed(store),
        await store.stream("s"),
        await store.losers("s"),
        await store.deliveries("task/1"),
        await store.seals(0),
        await store.heads(),
    ]


async def test_what_was_stored_before_a_restart_is_a_duplicate_after_it(path: Path, clock: Clock) -> None:
    store = await SqliteStore.open(path, clock=clock)
    await push(store, "s", *events(0, 3), opening=opening())
    await store.close()

    store = await SqliteStore.open(path, clock=clock)
    written = await push(store, "s", event(0), event(1), event(3, '{ "n": 3 }'), event(3, '"x"'), opening=opening())
    assert (written.opened, written.stored, written.duplicates, written.conflicts) == (False, 1, 2, (3,))
    assert [read.position for read in await whole_feed(store)] == [1, 2, 3, 4]
    assert (await verify(store)).ok
    await store.close()


async def test_a_store_that_was_not_closed_keeps_what_it_acknowledged(path: Path, clock: Clock) -> None:
    """A copy of the files at this moment is what a killed process would leave."""
    store = await SqliteStore.open(path, clock=clock)
    await push(store, "s", *events(0, 1), opening=opening())
    left = path.parent / "left"
    left.mkdir()
    for file in path.parent.glob("ledger.db*"):
        (left / file.name).write_bytes(file.read_bytes())
    await store.close()

    store = await SqliteStore.open(left / "ledger.db", clock=clock)
    assert keys(await whole_feed(store)) == [("s", -1), ("s", 0), ("s", 1)]
    assert (await verify(store)).ok
    await store.close()


@pytest.mark.parametrize("way", ["the same", "symlink", "symlinked folder", "relative", "text"])
async def test_a_second_server_on_one_file_is_refused_by_whatever_path(
    path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    (path.parent / "link.db").symlink_to(path)
    (path.parent / "folder").symlink_to(path.parent)
    ways: dict[str, Path | str] = {
        "the same": path,
        "symlink": path.parent / "link.db",
        "symlinked folder": path.parent / "folder" / "ledger.db",
        "relative": Path("ledger.db"),
        "text": "./ledger.db",
    }
    store = await SqliteStore.open(path)
    with pytest.raises(StoreLocked) as refused:
        await SqliteStore.open(ways[way])
    assert "ledger.db" in refused.value.detail
    assert str(os.getpid()) in refused.value.detail
    assert (await push(store, "s", event(0), opening=opening())).stored == 1
    await store.close()
    store = await SqliteStore.open(ways[way])
    assert keys(await whole_feed(store)) == [("s", -1), ("s", 0)]
    await store.close()


async def test_a_store_that_cannot_be_opened_holds_no_lock(path: Path) -> None:
    path.write_bytes(b"no database " * 100)
    with pytest.raises(StoreMismatch):
        await SqliteStore.open(path)
    path.unlink()
    store = await SqliteStore.open(path)
    await store.close()


async def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(path: Path) -> None:
    path.write_bytes(b"no database " * 1000)
    with pytest.raises(StoreMismatch, match=r"ledger\.db"):
        await SqliteStore.open(path)
    assert path.read_bytes() == b"no database " * 1000


async def test_a_database_of_another_program_is_refused_and_left_as_it_is(path: Path) -> None:
    db = sqlite3.connect(path)
    db.executescript("CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine')")
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreMismatch, match="another program"):
        await SqliteStore.open(path)
    assert path.read_bytes() == before


async def test_a_newer_schema_is_refused_and_left_as_it_is(path: Path) -> None:
    store = await SqliteStore.open(path)
    await push(store, "s", event(0), opening=opening())
    await store.close()
    db = sqlite3.connect(path)
    version = db.execute("PRAGMA user_version").fetchone()[0]
    db.execute(f"PRAGMA user_version = {version + 1}")
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreMismatch) as refused:
        await SqliteStore.open(path)
    assert str(version + 1) in refused.value.detail
    assert path.read_bytes() == before


async def push_until_refused(store: Store, chunks: list[list[NewEvent]]) -> tuple[int, StorageError | None]:
    """The index of the last chunk that was acknowledged, and what refused the next."""
    for index, chunk in enumerate(chunks):
        try:
            await push(store, "s", *chunk, opening=opening())
        except StorageError as error:
            return index - 1, error
    return len(chunks) - 1, None


async def test_a_full_disk_loses_nothing_that_was_acknowledged_and_goes_on_when_there_is_room(
    path: Path, clock: Clock
) -> None:
    store = await SqliteStore.open(path, clock=clock, page_count_max=100)
    padding = '"' + "x" * 20_000 + '"'
    chunks = [[event(seq, padding)] for seq in range(100)]
    acknowledged, refused = await push_until_refused(store, chunks)
    assert acknowledged >= 0
    assert isinstance(refused, StorageFull)
    assert "ledger.db" in refused.detail
    feed = await whole_feed(store)
    assert keys(feed) == [("s", seq) for seq in range(-1, acknowledged + 1)]
    assert await store.heads() == (len(feed),)
    assert (await verify(store)).ok
    assert (await push(store, "s", event(0, padding))).duplicates == 1
    await store.close()

    store = await SqliteStore.open(path, clock=clock)
    written = await push(store, "s", *[event(seq, padding) for seq in range(100)])
    assert (written.stored, written.duplicates) == (99 - acknowledged, acknowledged + 1)
    assert [read.position for read in await whole_feed(store)] == list(range(1, 102))
    assert (await verify(store)).ok
    await store.close()


async def test_a_small_chunk_still_fits_after_one_that_did_not(path: Path, clock: Clock) -> None:
    store = await SqliteStore.open(path, clock=clock, page_count_max=100)
    with pytest.raises(StorageFull):
        await push(store, "s", event(0, '"' + "x" * 2**20 + '"'), opening=opening())
    assert await store.stream("s") is None
    written = await push(store, "s", event(0), opening=opening())
    assert (written.opened, written.stored) == (True, 1)
    assert keys(await whole_feed(store)) == [("s", -1), ("s", 0)]
    assert (await verify(store)).ok
    await store.close()


async def test_a_closed_store_refuses_with_an_error_of_the_ledger(path: Path) -> None:
    store = await SqliteStore.open(path)
    await store.close()
    with pytest.raises(StorageError):
        await push(store, "s", event(0), opening=opening())


async def test_a_closed_store_keeps_nothing_beside_the_log_either(path: Path) -> None:
    store = await SqliteStore.open(path)
    await store.close()
    with pytest.raises(StorageError):
        await store.save_checkpoint("task/1", Checkpoint("v1", 3, b"state"))


async def test_closing_ends_also_what_is_read_from_just_then(path: Path) -> None:
    store = await SqliteStore.open(path)
    async with store._reading() as db:
        closing = asyncio.create_task(store.close())
        await asyncio.sleep(0)
    await closing
    with pytest.raises(ValueError, match="connection"):
        await db.execute("SELECT 1")


async def test_a_reader_beside_a_running_server_sees_what_it_has_committed(path: Path) -> None:
    store = await SqliteStore.open(path)
    await push(store, "s", event(0), opening=opening())
    beside = await SqliteStore.open(path, read_only=True)
    assert beside.ledger_id == store.ledger_id
    assert await whole_feed(beside) == await whole_feed(store)
    await push(store, "s", event(1))
    assert keys(await whole_feed(beside)) == [("s", -1), ("s", 0), ("s", 1)]
    assert (await verify(beside)).ok
    await beside.close()
    await store.close()


TAMPERING = {
    "payload": ("UPDATE events SET payload = ? WHERE position = 4", b'{"n":9}'),
    "kind": ("UPDATE events SET kind = 'comment' WHERE position = 4",),
    "actor": ("UPDATE events SET actor = 'nobody' WHERE position = 4",),
    "digest": ("UPDATE events SET digest = ? WHERE position = 4", b"\x00" * 16),
    "seq": ("UPDATE events SET seq = 77 WHERE position = 4",),
    "at": ("UPDATE events SET at = 5 WHERE position = 4",),
    "recorded_at": ("UPDATE events SET recorded_at = 5 WHERE position = 4",),
    "extra": ("UPDATE events SET extra = ? WHERE position = 4", b"{}"),
    "a row taken out": ("DELETE FROM events WHERE position = 4",),
    "the seal itself": ("UPDATE seals SET digest = ? WHERE number = 2", b"\x00" * 32),
    "the seal taken out": ("DELETE FROM seals WHERE number = 2",),
    "the seal cut shorter": ("UPDATE seals SET last = 4 WHERE number = 2",),
}


@pytest.mark.parametrize("sql_and_values", TAMPERING.values(), ids=TAMPERING)
async def test_tampering_with_a_row_is_found_and_names_the_seal(
    path: Path, clock: Clock, sql_and_values: tuple[str, object]
) -> None:
    store = await SqliteStore.open(path, clock=clock)
    await push(store, "s", event(0), opening=opening())  # seal 1, positions 1 and 2
    await push(store, "s", *events(1, 2, 3))  # seal 2, positions 3 to 5
    await push(store, "s", event(4))
    await store.close()
    change(path, *sql_and_values)

    store = await SqliteStore.open(path, clock=clock)
    verdict = await verify(store)
    assert (verdict.ok, verdict.bucket, verdict.seal, verdict.first) == (False, 0, 2, 3)
    assert "seal 2" in verdict.what
    assert (verdict.seals, verdict.events) == (1, 2)
    await store.close()


@pytest.mark.parametrize("column", ["task_id", "stream"])
async def test_moving_a_session_to_another_task_or_name_is_found(path: Path, clock: Clock, column: str) -> None:
    store = await SqliteStore.open(path, clock=clock)
    await push(store, "s", event(0), opening=opening())
    await store.close()
    change(path, f"UPDATE streams SET {column} = 'another'")
    store = await SqliteStore.open(path, clock=clock)
    verdict = await verify(store)
    assert (verdict.ok, verdict.seal) == (False, 1)
    await store.close()


async def test_an_end_that_was_cut_off_with_its_seal_is_found(path: Path, clock: Clock) -> None:
    store = await SqliteStore.open(path, clock=clock)
    await push(store, "s", event(0), opening=opening())
    await push(store, "s", event(1))
    [printed] = (await verify(store)).head
    await store.close()
    change(path, "DELETE FROM events WHERE position = 3")
    change(path, "DELETE FROM seals WHERE number = 2")
    store = await SqliteStore.open(path, clock=clock)
    verdict = await verify(store)
    assert (verdict.ok, verdict.seal, verdict.first, verdict.last) == (False, 2, 3, 3)
    await store.close()
    change(path, "UPDATE counters SET position = 2, seal = 1, link = (SELECT digest FROM seals)")
    store = await SqliteStore.open(path, clock=clock)
    assert (await verify(store)).ok
    assert not (await verify(store, expect=printed)).ok
    await store.close()
