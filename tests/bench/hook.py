"""How long an agent waits for a hook: from its start to its end, beside an interpreter that does nothing.

The place of the carrier is taken, so that no carrier runs in the background of the measurement.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import quantiles

from ledger.hooks import spool
from tests.bench.processes import BenchFailed
from tests.bench.results import Report, Sample, ratio, row

ROUNDS = 5
HOOKS = 20  # in a round
HOOK = ("-c", "from ledger.entry import main; main()", "hook", "claude-code")
NOTHING = ("-c", "pass")

_BODY = json.dumps(
    {
        "session_id": "bench",
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "make test"},
        "tool_response": {"stdout": "ok\n" * 1000, "stderr": ""},
        "tool_use_id": "toolu_1",
    }
).encode()


def run(folder: Path, progress: Callable[[str], None]) -> Report:
    """Measures in `folder`. Raises BenchFailed where a hook says something or leaves nothing behind."""
    outbox = str(folder / "hook" / "outbox.db")
    os.makedirs(os.path.dirname(outbox))
    environment = {**os.environ, "LEDGERD_OUTBOX": outbox}
    hooks, nothing = [], []
    with open(spool.carrier_path(outbox), "w") as place:
        fcntl.flock(place, fcntl.LOCK_EX)
        for number in range(ROUNDS):
            progress(f"hook, round {number + 1} of {ROUNDS}")
            hooks.append(_measured(HOOK, environment))
            nothing.append(_measured(NOTHING, environment))
    if os.path.getsize(spool.spool_path(outbox)) < ROUNDS * HOOKS * len(_BODY):
        raise BenchFailed("some hooks left nothing in the spool")
    return Report(
        "Hook: one after another, each a process; the target is 60 ms",
        ROUNDS,
        [row("ledgerd hook", hooks), row("python -c pass", nothing)],
        [ratio("ledgerd hook / python -c pass", hooks, nothing)],
    )


def _measured(words: Sequence[str], environment: Mapping[str, str]) -> Sample:
    waits_ms = []
    cpu_s = _children_cpu_s()
    began = time.perf_counter()
    for _ in range(HOOKS):
        start = time.perf_counter()
        done = subprocess.run([sys.executable, *words], input=_BODY, env=environment, capture_output=True)
        waits_ms.append((time.perf_counter() - start) * 1e3)
        if (done.returncode, done.stdout, done.stderr) != (0, b"", b""):
            raise BenchFailed(f"a hook ended with {done.returncode} and said {done.stdout + done.stderr!r}")
    seconds = time.perf_counter() - began
    cuts = quantiles(waits_ms, n=100)
    cpu_s = _children_cpu_s() - cpu_s
    return Sample(HOOKS, HOOKS, seconds, cpu_s, latency_p50_ms=cuts[49], latency_p99_ms=cuts[98])


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
