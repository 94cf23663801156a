"""A backup, made while writers go on, is the same ledger when it is restored."""

from __future__ import annotations

import asyncio
import sqlite3
import zipfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ledger.errors import StorageError, StoreMismatch
from ledger.store import postgres_backup, sqlite_backup
from ledger.store.base import Checkpoint, Store, Token
from ledger.store.postgres import PostgresStore
from ledger.store.sqlite import SqliteStore
from ledger.store.verifying import verify
from tests.postgres import TestLedgers
from tests.store.building import event, opening, push, whole_feed


def ignore(done: int) -> None:
    """Progress that nobody watches."""


async def write_until(store: Store, stop: asyncio.Event, backup: Callable[[], Awaitable[None]]) -> int:
    """Pushes while the backup is made; gives the number of events that were acknowledged before it began."""
    for seq in range(30):
        await push(store, f"s{seq % 3}", event(seq), event(seq, '"loses"'), opening=opening(str(seq % 3)))
    await store.put_token(Token("t", "saddle", "alpha", b"\x01" * 32, created_at=1))
    await store.save_checkpoint("c", Checkpoint("v", 1, b"state"))
    before = sum(await store.heads())

    async def go_on() -> None:
        seq = 30
        while not stop.is_set():
            await push(store, f"s{seq % 3}", event(seq))
            seq += 1

    writing = asyncio.create_task(go_on())
    await backup()
    stop.set()
    await writing
    return before


async def assert_same(store: Store, restored: Store, before: int) -> None:
    assert restored.ledger_id == store.ledger_id
    feed = await whole_feed(restored)
    assert before <= len(feed) <= sum(await store.heads())
    originals = {(one.bucket, one.position): one for one in await whole_feed(store)}
    assert all(originals[one.bucket, one.position] == one for one in feed)
    assert (await verify(restored)).ok
    assert await restored.tokens() == await store.tokens()
    assert await restored.load_checkpoint("c", "v") == Checkpoint("v", 1, b"state")
    assert len(await restored.losers("s1")) == 10
    assert (await push(restored, "s0", event(0))).duplicates == 1
    assert (await push(restored, "s0", event(10_000))).stored == 1
    assert (await verify(restored)).ok


async def test_a_sqlite_ledger_is_backed_up_while_it_is_written_and_restored(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "ledger.db")
    file = tmp_path / "backup.db"
    before = await write_until(store, asyncio.Event(), lambda: sqlite_backup.backup(tmp_path / "ledger.db", file))
    as_it_is = await SqliteStore.open(file, read_only=True)
    assert (await verify(as_it_is)).ok
    await as_it_is.close()
    await sqlite_backup.restore(file, tmp_path / "new" / "ledger.db")
    restored = await SqliteStore.open(tmp_path / "new" / "ledger.db")
    await assert_same(store, restored, before)
    await restored.close()
    await store.close()


async def test_a_postgres_ledger_is_backed_up_while_it_is_written_and_restored(
    tmp_path: Path, postgres: TestLedgers
) -> None:
    url, new = postgres.fresh(buckets=3), postgres.fresh()
    store = await PostgresStore.open(url)
    file = tmp_path / "backup.zip"
    before = await write_until(store, asyncio.Event(), lambda: postgres_backup.backup(url, file, progress=ignore))
    await postgres_backup.restore(file, new, progress=ignore)
    restored = await PostgresStore.open(new)
    assert restored.buckets == 3
    await assert_same(store, restored, before)
    await restored.close()
    await store.close()


async def test_nothing_is_restored_over_a_ledger(tmp_path: Path, postgres: TestLedgers) -> None:
    sqlite, url = tmp_path / "ledger.db", postgres.fresh(buckets=1)
    await (await SqliteStore.open(sqlite)).close()
    store = await PostgresStore.open(url)
    await push(store, "s", event(0), opening=opening())
    await postgres_backup.backup(url, tmp_path / "b.zip", progress=ignore)
    await sqlite_backup.backup(sqlite, tmp_path / "b.db")
    await push(store, "s", event(1))
    feed, content = await whole_feed(store), sqlite.read_bytes()
    with pytest.raises(StoreMismatch, match="there is a ledger"):
        await postgres_backup.restore(tmp_path / "b.zip", url, progress=ignore)
    with pytest.raises(StoreMismatch, match="there is a file"):
        await sqlite_backup.restore(tmp_path / "b.db", sqlite)
    assert (await whole_feed(store), sqlite.read_bytes()) == (feed, content)
    await store.close()


async def test_a_file_that_is_no_backup_is_refused(tmp_path: Path, postgres: TestLedgers) -> None:
    text, zipped, foreign = tmp_path / "text", tmp_path / "zipped", tmp_path / "foreign"
    text.write_text("no backup " * 1000)
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("ledger.json", b'{"ledgerd_backup":99,"schema_version":1,"ledger_id":"a","buckets":1}')
    sqlite3.connect(foreign).executescript("CREATE TABLE notes (text)").connection.close()
    url = postgres.fresh()
    for file in (text, foreign):
        with pytest.raises(StoreMismatch):
            await sqlite_backup.restore(file, tmp_path / "new.db")
        with pytest.raises(StoreMismatch, match="no backup"):
            await postgres_backup.restore(file, url, progress=ignore)
    with pytest.raises(StoreMismatch, match="format 99"):
        await postgres_backup.restore(zipped, url, progress=ignore)
    assert not (tmp_path / "new.db").exists()
    with pytest.raises(StorageError, match="no ledger"):
        await PostgresStore.open(url, read_only=True)
