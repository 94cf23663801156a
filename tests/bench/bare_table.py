"""The least that a durable log can cost: an `executemany` loop into ledgerd's own events table.

The very same DDL, columns, indexes and contents; WAL and `synchronous=FULL`, one transaction for each chunk, the
sessions in turn. The rows are made before the clock starts: no HTTP, no JSON, no digests, no seals are in the time.
"""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from ledger.events.decode import decode_chunk
from ledger.events.kinds import is_decisive
from ledger.events.model import Limits
from ledger.store.sqlite_file import WAL_BYTES_KEPT, ddl
from tests.bench.processes import BenchFailed, Child
from tests.bench.results import Sample
from tests.bench.workload import Workload

_RUN_S_MAX = 60.0
_INSERT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

Rows = list[Sequence[Any]]


class _Run(msgspec.Struct, frozen=True):
    seconds: float
    cpu_s: float
    stored: int


def measure(workload: Workload, store: Path) -> Sample:
    """Fills a new file in a process of its own."""
    with Child("tests.bench.bare_table", str(store)) as child:
        child.say(msgspec.json.encode(workload))
        run = msgspec.json.decode(child.hear(_RUN_S_MAX), type=_Run)
    if run.stored != workload.events:
        raise BenchFailed(f"the bare table holds {run.stored} events, not {workload.events}")
    return Sample(workload.events, workload.requests, run.seconds, run.cpu_s)


def main() -> None:
    workload = msgspec.json.decode(sys.stdin.buffer.readline(), type=Workload)
    transactions = list(_transactions(workload))
    with closing(sqlite3.connect(sys.argv[1], isolation_level=None)) as db:
        _prepare(db, workload)
        run = _insert(db, transactions)
    print(msgspec.json.encode(run).decode(), flush=True)


def _insert(db: sqlite3.Connection, transactions: Sequence[Rows]) -> _Run:
    began, cpu = time.perf_counter(), time.process_time()
    for rows in transactions:
        db.execute("BEGIN IMMEDIATE")
        db.executemany(_INSERT, rows)
        db.execute("COMMIT")
    seconds, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    [stored] = db.execute("SELECT count(*) FROM events").fetchone()
    return _Run(seconds, cpu_s, stored)


def _prepare(db: sqlite3.Connection, workload: Workload) -> None:
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute(f"PRAGMA journal_size_limit = {WAL_BYTES_KEPT}")
    db.executescript(ddl())
    for n, session_id in enumerate(workload.session_ids(), 1):
        db.execute("INSERT INTO roots VALUES (?, ?)", (n, f"task/{n}"))
        db.execute(
            "INSERT INTO streams VALUES (?, ?, ?, ?, 'owner', 0, -1, 0, ?)",
            (n, session_id, n, str(n), time.time_ns()),
        )


def _transactions(workload: Workload) -> Iterator[Rows]:
    """The rows of each chunk, the sessions in turn."""
    limits, position = Limits(), 0
    sessions = [(n, id, workload.bodies(id)) for n, id in enumerate(workload.session_ids(), 1)]
    for _ in range(workload.chunks):
        for n, session_id, bodies in sessions:
            rows: Rows = []
            for event in decode_chunk(next(bodies), limits).events:
                position += 1
                place = (position, n, event.seq, n, is_decisive(session_id, event.kind), event.at, time.time_ns())
                rows.append((*place, event.digest, event.kind, event.actor, event.extra, event.payload))
            yield rows


if __name__ == "__main__":
    main()
