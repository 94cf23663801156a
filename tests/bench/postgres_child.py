"""One measurement on PostgreSQL in a process of its own: a bare INSERT, or ledgerd's store.

Both get the same events into the same table of a fresh schema, from 16 pushers with one batch in flight each. All is
decoded before the clock starts. The bare INSERT knows each event's position beforehand; it gives no receipts, keeps
no order and makes no seals.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import asyncpg
import msgspec
import uvloop

from ledger.events.decode import decode_chunk
from ledger.events.kinds import is_decisive
from ledger.events.model import Limits, NewEvent
from ledger.store.base import Opening, Write
from ledger.store.postgres import PostgresStore
from ledger.store.postgres_schema import ddl
from ledger.store.postgres_url import parse_url
from tests.bench.workload import Workload

_COLUMNS = {
    "bucket": "integer",
    "position": "bigint",
    "stream_n": "bigint",
    "seq": "bigint",
    "root_n": "bigint",
    "decisive": "boolean",
    "at": "bigint",
    "recorded_at": "bigint",
    "digest": "bytea",
    "kind": "text",
    "actor": "text",
    "extra": "bytea",
    "payload": "bytea",
}
_ARRAYS = ", ".join(f"${number}::{type_}[]" for number, type_ in enumerate(_COLUMNS.values(), 1))
_INSERT = f"INSERT INTO events ({', '.join(_COLUMNS)}) SELECT * FROM unnest({_ARRAYS}) ON CONFLICT DO NOTHING"

Chunks = dict[str, list[list[NewEvent]]]
Push = Callable[[str], Awaitable[None]]


class Plan(msgspec.Struct, frozen=True):
    """`url` is that of the ledger, in a schema of its own."""

    what: Literal["bare", "store"]
    url: str
    workload: Workload
    buckets: int


class Run(msgspec.Struct, frozen=True):
    """`again_s` is what the same delivery took a second time."""

    seconds: float
    cpu_s: float
    again_s: float
    stored: int


def main() -> None:
    plan = msgspec.json.decode(sys.stdin.buffer.readline(), type=Plan)
    print(msgspec.json.encode(uvloop.run(_run(plan))).decode(), flush=True)


async def _run(plan: Plan) -> Run:
    limits = Limits()
    chunks = {
        session: [list(decode_chunk(body, limits).events) for body in plan.workload.bodies(session)]
        for session in plan.workload.session_ids()
    }
    return await (_bare if plan.what == "bare" else _store)(plan, chunks)


async def _timed(chunks: Chunks, push: Push) -> tuple[float, float]:
    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*map(push, chunks))
    return time.perf_counter() - began, time.process_time() - cpu


async def _bare(plan: Plan, chunks: Chunks) -> Run:
    url = parse_url(plan.url)
    connections = len(chunks)
    async with asyncpg.create_pool(
        url.dsn, min_size=connections, max_size=connections, server_settings={"search_path": url.schema}
    ) as pool:
        await pool.execute(ddl(url.schema))
        batches = _columns(chunks, plan.buckets)

        async def push(session: str) -> None:
            async with pool.acquire() as connection:
                for columns in batches[session]:
                    await connection.execute(_INSERT, *columns)

        seconds, cpu_s = await _timed(chunks, push)
        stored = await pool.fetchval("SELECT count(*) FROM events")
        again_s, _ = await _timed(chunks, push)
    return Run(seconds, cpu_s, again_s, stored)


def _columns(chunks: Chunks, buckets: int) -> dict[str, list[list[Any]]]:
    batches: dict[str, list[list[Any]]] = {}
    positions = dict.fromkeys(range(buckets), 0)
    for number, (session, events_of) in enumerate(chunks.items()):
        bucket = number % buckets
        for events in events_of:
            first = positions[bucket] + 1
            positions[bucket] += len(events)
            rows = [
                (
                    *(bucket, position, number, event.seq, number, is_decisive(session, event.kind)),
                    *(event.at, time.time_ns(), event.digest, event.kind, event.actor, event.extra, event.payload),
                )
                for position, event in enumerate(events, first)
            ]
            batches.setdefault(session, []).append([list(column) for column in zip(*rows, strict=True)])
    return batches


async def _store(plan: Plan, chunks: Chunks) -> Run:
    store = await PostgresStore.open(f"{plan.url}&buckets={plan.buckets}")
    try:
        for number, session in enumerate(chunks):
            await store.append([Write(session, opening=Opening(f"task/{number}", str(number), "bench"))])

        async def push(session: str) -> None:
            for events in chunks[session]:
                await store.append([Write(session, events)])

        seconds, cpu_s = await _timed(chunks, push)
        stored = sum(await store.heads())
        again_s, _ = await _timed(chunks, push)
    finally:
        await store.close()
    return Run(seconds, cpu_s, again_s, stored)


if __name__ == "__main__":
    main()
