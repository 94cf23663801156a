"""How fast events come in on PostgreSQL, beside a bare INSERT into the same table of the same server.

- a bare `INSERT … SELECT unnest … ON CONFLICT DO NOTHING` from 16 connections: what the rows themselves cost;
- ledgerd's store with 1, 8 and 64 buckets: what positions, receipts and seals cost, and how far the counter rows
  stand in each other's way;
- one ledgerd over HTTP, and two on the same ledger with half of the pushers each.

PostgreSQL runs on this machine with its defaults, everything durable, and shares the processors with all the others.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

import msgspec

from bundles.rig.postgres import Postgres
from tests.bench.loadgen import Load
from tests.bench.postgres_child import Plan, Run
from tests.bench.processes import BenchFailed, Child
from tests.bench.results import Report, Sample, ratio, row
from tests.bench.servers import Server, ledgerd_on
from tests.bench.workload import Workload

ROUNDS = 3
PUSHERS = 16
BUCKETS = (1, 8, 64)
BY_HUNDRED = Workload("by-100", PUSHERS, chunks=60, batch=100)
HALVES = tuple(Workload(f"half-{number}", PUSHERS // 2, chunks=60, batch=100) for number in (1, 2))
_RUN_S_MAX = 90.0

Samples = dict[str, list[Sample]]


def run(folder: Path, progress: Callable[[str], None]) -> Report:
    """Raises BenchFailed where any event is lost or counted twice."""
    samples: Samples = defaultdict(list)
    with Postgres({"max_connections": "200", "shared_buffers": "256MB"}) as postgres:
        postgres.make()
        for number in range(ROUNDS):
            progress(f"postgres, round {number + 1} of {ROUNDS}")
            _round(postgres, samples)
    return _report(samples)


def _round(postgres: Postgres, samples: Samples) -> None:
    samples["bare insert"].append(_measure("bare", postgres, 8)[0])
    for buckets in BUCKETS:
        first, again = _measure("store", postgres, buckets)
        samples[f"store, {buckets} buckets"].append(first)
        samples[f"store, {buckets} buckets, again"].append(again)
    samples["one server"].append(_over_http(_fresh(postgres), [BY_HUNDRED]))
    samples["two servers"].append(_over_http(_fresh(postgres), HALVES))


def _measure(what: Literal["bare", "store"], postgres: Postgres, buckets: int) -> tuple[Sample, Sample]:
    """The first delivery and the second."""
    with Child("tests.bench.postgres_child") as child:
        child.say(msgspec.json.encode(Plan(what, _fresh(postgres), BY_HUNDRED, buckets)))
        done = msgspec.json.decode(child.hear(_RUN_S_MAX), type=Run)
    if done.stored != BY_HUNDRED.events:
        raise BenchFailed(f"{what}: {done.stored} events are stored, not {BY_HUNDRED.events}")
    first = Sample(BY_HUNDRED.events, BY_HUNDRED.requests, done.seconds, done.cpu_s)
    return first, Sample(BY_HUNDRED.events, BY_HUNDRED.requests, done.again_s, done.cpu_s)


def _over_http(url: str, workloads: Sequence[Workload]) -> Sample:
    """A server on the same ledger for each of the workloads, all at once."""
    token = secrets.token_urlsafe(24)
    with ExitStack() as stack:
        servers = [stack.enter_context(ledgerd_on(url, token)) for _ in workloads]
        loads = [_load(stack, server, workload) for server, workload in zip(servers, workloads, strict=True)]
        with ThreadPoolExecutor(len(loads)) as pool:
            delivered = [
                pool.submit(load.deliver, stored=w.events, duplicates=0)
                for load, w in zip(loads, workloads, strict=True)
            ]
            parts = [one.result() for one in delivered]
    return Sample(
        events=sum(part.events for part in parts),
        requests=sum(part.requests for part in parts),
        seconds=max(part.seconds for part in parts),
        cpu_s=sum(part.cpu_s for part in parts),
        peak_mib=sum(part.peak_mib or 0 for part in parts),
        latency_p50_ms=max(part.latency_p50_ms or 0 for part in parts),
        latency_p99_ms=max(part.latency_p99_ms or 0 for part in parts),
        pushers_cpu_s=sum(part.pushers_cpu_s or 0 for part in parts),
    )


def _load(stack: ExitStack, server: Server, workload: Workload) -> Load:
    server.open_sessions(workload.session_ids())
    return Load(stack.enter_context(Child("tests.bench.loadgen")), server, workload)


def _fresh(postgres: Postgres) -> str:
    return postgres.url(schema=f"bench_{secrets.token_hex(4)}")


def _report(samples: Samples) -> Report:
    bare, one = samples["bare insert"], samples["store, 1 buckets"]
    return Report(
        f"PostgreSQL: {PUSHERS} pushers, chunks of 100 events",
        ROUNDS,
        [row(name, samples[name]) for name in sorted(samples)],
        [
            ratio("store, 8 buckets / bare insert", samples["store, 8 buckets"], bare, aim=0.7),
            ratio("store, 1 bucket / bare insert", one, bare),
            ratio("store, 64 buckets / bare insert", samples["store, 64 buckets"], bare),
            ratio(
                "8 buckets: again / first", samples["store, 8 buckets, again"], samples["store, 8 buckets"], aim=1.0
            ),
            ratio("two servers / one server", samples["two servers"], samples["one server"]),
        ],
    )
