from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from ledger.errors import InvalidField, StorageError, StoreMismatch
from ledger.store.base import Checkpoint, Store, Token
from ledger.store.postgres import PostgresStore
from ledger.store.postgres_database import Database
from ledger.store.postgres_url import parse_url
from ledger.store.verifying import verify
from tests.postgres import TestLedgers
from tests.store.building import Clock, event, events, keys, opening, push, whole_feed
from tests.store.suite import *  # noqa: F403


@pytest.fixture
def make_store(postgres: TestLedgers, clock: Clock) -> Callable[[], Awaitable[Store]]:
    async def make() -> Store:
        return await PostgresStore.open(postgres.fresh(buckets=3), clock=clock)

    return make


@pytest.fixture
def url(postgres: TestLedgers) -> str:
    return postgres.fresh(buckets=2)


async def run_sql(url: str, *statements: str) -> list[object]:
    """Does something to the tables behind the store's back; gives the rows of the last statement."""
    database = await Database.open(parse_url(url), read_only=False)
    try:
        rows: list[object] = []
        for statement in statements:
            rows = [tuple(row) for row in await database.rows(statement)]
        return rows
    finally:
        await database.close()


async def test_a_ledger_that_is_opened_again_holds_all_that_was_acknowledged(url: str, clock: Clock) -> None:
    store = await PostgresStore.open(url, clock=clock)
    await push(store, "s", *events(0, 3), opening=opening())
    await push(store, "s", event(0), event(3, '"x"'))
    token = Token("a", "owner", "owner", b"\x01" * 32, created_at=1)
    await store.put_token(token)
    await store.save_checkpoint("task/1", Checkpoint("v1", 3, b"state"))
    kept = await reading_of(store)
    await store.close()

    store = await PostgresStore.open(url, clock=clock)
    assert await reading_of(store) == kept
    assert await store.tokens() == [token]
    assert await store.load_checkpoint("task/1", "v1") == Checkpoint("v1", 3, b"state")
    assert (await push(store, "s", event(0), event(4))).duplicates == 1
    assert (await verify(store)).ok
    await store.close()


async def reading_of(store: Store) -> list[object]:
    return [
        store.ledger_id,
        await whole_feed(store),
        await store.stream("s"),
        await store.losers("s"),
        await store.deliveries("task/1"),
        await store.seals(store.bucket_of("task/1")),
        await store.heads(),
    ]


async def test_the_number_of_buckets_is_fixed_when_a_ledger_is_made(url: str) -> None:
    store = await PostgresStore.open(url)
    await push(store, "s", event(0), opening=opening())
    feed = await whole_feed(store)
    await store.close()
    with pytest.raises(StoreMismatch, match="2 buckets, not with 3"):
        await PostgresStore.open(url.replace("buckets=2", "buckets=3"))
    store = await PostgresStore.open(url.replace("&buckets=2", ""))
    assert (store.buckets, await whole_feed(store)) == (2, feed)
    await store.close()


async def test_a_schema_of_another_program_is_refused_and_left_as_it_is(url: str) -> None:
    schema = parse_url(url).schema
    await run_sql(
        url, f"CREATE SCHEMA {schema}", "CREATE TABLE events (mine text)", "INSERT INTO events VALUES ('x')"
    )
    for read_only in (False, True):
        with pytest.raises(StoreMismatch, match="another program"):
            await PostgresStore.open(url, read_only=read_only)
    tables = f"SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = '{schema}'"
    assert await run_sql(url, tables) == [(1,)]
    assert await run_sql(url, "SELECT mine FROM events") == [("x",)]


@pytest.mark.parametrize(("version", "hint"), [(2, "newer"), (0, "Export")])
async def test_another_schema_version_is_refused_and_left_as_it_is(url: str, version: int, hint: str) -> None:
    await (await PostgresStore.open(url)).close()
    await run_sql(url, f"UPDATE ledger SET schema_version = {version} WHERE bucket = 0")
    before = await run_sql(url, "SELECT * FROM ledger")
    with pytest.raises(StoreMismatch, match=f"schema {version}") as refused:
        await PostgresStore.open(url)
    assert hint in refused.value.hint
    assert await run_sql(url, "SELECT * FROM ledger") == before


async def test_tables_that_were_made_by_hand_are_founded_by_the_first_server(url: str) -> None:
    await (await PostgresStore.open(url)).close()
    await run_sql(url, "DELETE FROM ledger", "DELETE FROM counters")  # as after `ledgerd schema | psql`
    store = await PostgresStore.open(url)
    assert (await push(store, "s", event(0), opening=opening())).stored == 1
    await store.close()


async def test_a_ledger_that_is_not_there_is_not_made_by_reading(url: str) -> None:
    with pytest.raises(StoreMismatch, match="no ledger"):
        await PostgresStore.open(url, read_only=True)
    schema = parse_url(url).schema
    assert await run_sql(url, f"SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = '{schema}'") == []


async def test_a_server_that_takes_no_writes_is_refused_for_writing_and_good_for_reading(url: str) -> None:
    store = await PostgresStore.open(url)
    await push(store, "s", event(0), opening=opening())
    standby = url + "&default_transaction_read_only=on"
    with pytest.raises(StorageError, match="takes no writes"):
        await PostgresStore.open(standby)
    reading = await PostgresStore.open(standby, read_only=True)
    assert await whole_feed(reading) == await whole_feed(store)
    with pytest.raises(StorageError, match="reading only"):
        await push(reading, "s", event(1))
    await reading.close()
    await store.close()


WRONG = {
    "a port where nobody listens": ("postgresql://postgres@127.0.0.1:1/postgres", StorageError, "127.0.0.1:1"),
    "a port that is no number": ("postgresql://postgres@127.0.0.1:x/postgres", InvalidField, "store"),
    "a schema that would need quotes": ("postgresql://h/db?schema=a-b", InvalidField, "schema"),
    "no buckets": ("postgresql://h/db?buckets=0", InvalidField, "buckets=0"),
    "too many buckets": ("postgresql://h/db?buckets=9999", InvalidField, "buckets=9999"),
    "buckets that are no number": ("postgresql://h/db?buckets=many", InvalidField, "buckets=many"),
}


@pytest.mark.parametrize(("url", "error", "said"), WRONG.values(), ids=WRONG)
async def test_a_url_that_cannot_be_is_told_in_a_sentence(url: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        await PostgresStore.open(url)


async def test_an_unknown_database_is_told_in_a_sentence(postgres: TestLedgers) -> None:
    with pytest.raises(StoreMismatch, match="no_such_database"):
        await PostgresStore.open(postgres.url.replace("/postgres", "/no_such_database"))


def test_a_message_never_shows_the_password() -> None:
    assert parse_url("postgresql://me:secret@h1:1,h2:2/db?schema=s&sslmode=require").place == "h1:1,h2:2/db, schema s"


async def test_a_closed_store_refuses_with_an_error_of_the_ledger(url: str) -> None:
    store = await PostgresStore.open(url)
    await store.close()
    with pytest.raises(StorageError):
        await push(store, "s", event(0), opening=opening())


TAMPERING = {
    "payload": "UPDATE events SET payload = '{}' WHERE position = 4",
    "actor": "UPDATE events SET actor = 'nobody' WHERE position = 4",
    "seq": "UPDATE events SET seq = 77 WHERE position = 4",
    "a row taken out": "DELETE FROM events WHERE position = 4",
    "the seal itself": "UPDATE seals SET digest = decode(repeat('00', 32), 'hex') WHERE number = 2",
    "the seal taken out": "DELETE FROM seals WHERE number = 2",
}


@pytest.mark.parametrize("sql", TAMPERING.values(), ids=TAMPERING)
async def test_tampering_with_a_row_is_found_and_names_the_seal(postgres: TestLedgers, sql: str) -> None:
    url = postgres.fresh(buckets=1)
    store = await PostgresStore.open(url)
    await push(store, "s", event(0), opening=opening())  # seal 1, positions 1 and 2
    await push(store, "s", *events(1, 2, 3))  # seal 2, positions 3 to 5
    await push(store, "s", event(4))
    await run_sql(url, sql)
    verdict = await verify(store)
    assert (verdict.ok, verdict.bucket, verdict.seal, verdict.first) == (False, 0, 2, 3)
    assert keys((await whole_feed(store))[:2]) == [("s", -1), ("s", 0)]
    await store.close()
