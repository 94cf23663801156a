"""How fast events come in, beside the least that the same work can cost on the same machine in the same minute.

- a bare `executemany` loop into the same table: what the log itself costs;
- a do-nothing route that is sent the same bodies: what HTTP itself costs;
- ledgerd over HTTP, with everything that it promises: delivered first, and delivered again.

Each round measures all of them, one right after another on fresh files.
"""

from __future__ import annotations

import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from tests.bench import bare_table
from tests.bench.loadgen import Load
from tests.bench.processes import BenchFailed, Child
from tests.bench.results import Report, Sample, ratio, row
from tests.bench.servers import Server, bare_route, ledgerd
from tests.bench.workload import Workload

ROUNDS = 5
BUDGET_S = 80.0  # a round that would end later is not begun: on a busy machine there are fewer

PUSHERS = 16
BY_HUNDRED = Workload("by-100", PUSHERS, chunks=60, batch=100)
BY_ONE = Workload("by-1", PUSHERS, chunks=300, batch=1)
WORKLOADS = (BY_ONE, BY_HUNDRED)

Samples = dict[str, list[Sample]]


def run(folder: Path, progress: Callable[[str], None]) -> Report:
    """Measures in `folder`, which should lie on the disk that a ledger would. Raises BenchFailed where any event is
    lost, counted twice or unaccounted for."""
    samples: Samples = defaultdict(list)
    began, rounds, longest_s = time.monotonic(), 0, 0.0
    while rounds < ROUNDS and (round_began := time.monotonic()) - began + longest_s < BUDGET_S:
        progress(f"ingest, round {rounds + 1} of {ROUNDS}")
        _round(folder, f"round-{rounds}", samples)
        longest_s = max(longest_s, time.monotonic() - round_began)
        rounds += 1
    return _report(samples, rounds)


def _round(folder: Path, name: str, samples: Samples) -> None:
    samples["bare table, 100"].append(bare_table.measure(BY_HUNDRED, folder / f"{name}-bare.db"))
    store = folder / f"{name}.db"
    with ledgerd(store) as server:
        for workload in WORKLOADS:
            server.open_sessions(workload.session_ids())
            first, again = _deliver_twice(server, workload)
            samples[f"ledgerd, {workload.batch}, first"].append(first)
            samples[f"ledgerd, {workload.batch}, again"].append(again)
    _check_log(store)
    with bare_route() as server:
        for workload in WORKLOADS:
            with Child("tests.bench.loadgen") as child:
                sample = Load(child, server, workload).deliver(stored=workload.requests, duplicates=0)
            samples[f"bare route, {workload.batch}"].append(sample)


def _deliver_twice(server: Server, workload: Workload) -> tuple[Sample, Sample]:
    with Child("tests.bench.loadgen") as child:
        load = Load(child, server, workload)
        first = load.deliver(stored=workload.events, duplicates=0)
        return first, load.deliver(stored=0, duplicates=workload.events)


def _check_log(store: Path) -> None:
    """Raises BenchFailed unless the log holds each pushed event once."""
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db:
        [held] = db.execute(
            "SELECT count(*) FROM events JOIN streams USING (stream_n) WHERE stream NOT LIKE '@%' AND seq >= 0"
        ).fetchone()
    sent = sum(workload.events for workload in WORKLOADS)
    if held != sent:
        raise BenchFailed(f"the log holds {held} events, not the {sent} that were sent")


def _report(samples: Samples, rounds: int) -> Report:
    first_by_hundred, again_by_hundred = samples["ledgerd, 100, first"], samples["ledgerd, 100, again"]
    first_by_one, again_by_one = samples["ledgerd, 1, first"], samples["ledgerd, 1, again"]
    return Report(
        f"Ingest: {PUSHERS} pushers, chunks of 100 events and of 1",
        rounds,
        [row(name, samples[name]) for name in sorted(samples, key=_size_of_chunks)],
        [
            ratio("chunks of 100: ledgerd / bare table", first_by_hundred, samples["bare table, 100"], aim=0.8),
            ratio("chunks of 1: ledgerd / bare route", first_by_one, samples["bare route, 1"], aim=0.5),
            ratio("chunks of 100: again / first", again_by_hundred, first_by_hundred, aim=1.0),
            ratio("chunks of 1: again / first", again_by_one, first_by_one, aim=1.0),
        ],
    )


def _size_of_chunks(name: str) -> int:
    """100 before 1; within a size, rows stand in the order of their measurement."""
    return -int(name.split(", ")[1])
