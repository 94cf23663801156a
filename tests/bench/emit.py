"""What `emit` costs a daemon, beside the least that keeping the same payload durably can cost.

The least is one INSERT of the payload into a bare table, as a transaction of its own: WAL, `synchronous=FULL`. Both
are called in turn in this process, on the same disk; no sender is at work.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from ledger.client import Saddle
from tests.bench.processes import BenchFailed
from tests.bench.results import Report, Sample, ratio, row
from tests.bench.workload import Workload

ROUNDS = 7
EVENTS = 300
AIM = 0.33  # at most three times the time

_NOWHERE = "http://127.0.0.1:9"


def run(folder: Path, progress: Callable[[str], None]) -> Report:
    """Measures in `folder`, which should lie on the disk that an outbox would. Raises BenchFailed where an event that
    was emitted is not in the outbox."""
    events = _events()
    bare: list[Sample] = []
    ours: list[Sample] = []
    table = folder / "bare.db"
    with (
        closing(sqlite3.connect(table, isolation_level=None)) as db,
        Saddle(_NOWHERE, "none", outbox=folder / "outbox.db", drain=False) as saddle,
    ):
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("CREATE TABLE events (n INTEGER PRIMARY KEY, payload BLOB NOT NULL)")
        session = saddle.open_session(task={"title": "Bench"})
        for number in range(ROUNDS):
            progress(f"emit, round {number + 1} of {ROUNDS}")
            payloads = [msgspec.json.encode(payload) for _, payload in events]
            bare.append(
                _timed(lambda payload: db.execute("INSERT INTO events (payload) VALUES (?)", (payload,)), payloads)
            )
            ours.append(_timed(lambda event: session.emit(event[0], event[1]), events))
        last = session.emit("note")
    if last != ROUNDS * EVENTS:
        raise BenchFailed(f"the outbox holds {last} events, not the {ROUNDS * EVENTS} that were emitted")
    return Report(
        f"Emit: {EVENTS} events one by one, each durable before the next",
        ROUNDS,
        [row("bare insert", bare), row("emit", ours)],
        [ratio("emit / bare insert", ours, bare, aim=AIM)],
    )


def _events() -> list[tuple[str, Any]]:
    [body] = Workload("emit", pushers=1, chunks=1, batch=EVENTS).bodies("emit")
    return [(event["kind"], event["payload"]) for event in msgspec.json.decode(body)["events"]]


def _timed(act: Callable[[Any], object], values: list[Any]) -> Sample:
    began, cpu = time.perf_counter(), time.process_time()
    for value in values:
        act(value)
    return Sample(len(values), len(values), time.perf_counter() - began, time.process_time() - cpu)
