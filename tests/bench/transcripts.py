"""How fast a transcript is brought in, beside what its mere parsing costs on the same machine in the same minute.

A Claude Code transcript of 3.5 MB, made up with a seed, is
- parsed line by line by orjson, and nothing more;
- read into events;
- read, and cleaned of secrets;
- brought to a ledger over HTTP, with all of that: what `ledgerd import` does once it runs.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import orjson

from ledger.client.api import Api
from ledger.client.redaction import Redactor
from ledger.transcripts.delivering import Delivery
from ledger.transcripts.finding import Finder, Found
from ledger.transcripts.formats import AGENTS
from ledger.transcripts.model import Report as Reading
from tests.bench.processes import BenchFailed
from tests.bench.results import Report, Sample, ratio, row
from tests.bench.servers import ledgerd

ROUNDS = 7
FILE_BYTES = 3_500_000
SEED = 20_260_301

PARSED, READ, CLEANED, BROUGHT = "orjson alone", "read into events", "read and redacted", "brought to a ledger"

Samples = dict[str, list[Sample]]


def run(folder: Path, progress: Callable[[str], None]) -> Report:
    """Measures in `folder`. Raises BenchFailed where an event is lost, or stored twice."""
    samples: Samples = defaultdict(list)
    for number in range(ROUNDS):
        progress(f"transcripts, round {number + 1} of {ROUNDS}")
        _round(folder / f"transcript-{number}.jsonl", folder / f"transcript-{number}.db", samples)
    return Report(
        "A transcript of 3.5 MB (a request is one pass over it)",
        ROUNDS,
        [row(name, samples[name]) for name in (PARSED, READ, CLEANED, BROUGHT)],
        [
            ratio("read / parsed", samples[READ], samples[PARSED], aim=1 / 3),
            ratio("read and redacted / parsed", samples[CLEANED], samples[PARSED], aim=1 / 3),
            ratio("brought / parsed", samples[BROUGHT], samples[PARSED]),
        ],
    )


def _round(path: Path, store: Path, samples: Samples) -> None:
    _write(path)
    [found] = Finder(AGENTS).found_at(path) or [None]
    if found is None:
        raise BenchFailed("the transcript was not known as one")
    nowhere = _Nowhere()
    _deliver(found, nowhere)
    samples[PARSED].append(_sample(nowhere.events, lambda: _parse(path)))
    samples[READ].append(_sample(nowhere.events, lambda: _deliver(found, _Nowhere())))
    samples[CLEANED].append(_sample(nowhere.events, lambda: _deliver(found, _Nowhere(), Redactor())))
    with ledgerd(store) as server, Api(f"http://127.0.0.1:{server.port}", server.token) as api:
        delivery = Delivery(api, redactor=Redactor())
        samples[BROUGHT].append(_sample(nowhere.events, lambda: delivery.deliver(found, Reading())))
        delivery.deliver(found, Reading())
        stored, duplicates = delivery.delivered.stored, delivery.delivered.duplicates
        if not stored == duplicates == nowhere.events:
            raise BenchFailed(f"of {nowhere.events} events {stored} were stored, and {duplicates} known again")


def _sample(events: int, work: Callable[[], object]) -> Sample:
    began, cpu_began = time.perf_counter(), time.process_time()
    work()
    return Sample(events, 1, time.perf_counter() - began, time.process_time() - cpu_began)


def _parse(path: Path) -> None:
    with path.open("rb") as file:
        for line in file:
            orjson.loads(line)


def _deliver(found: Found, ledger: Any, redactor: Redactor | None = None) -> None:
    Delivery(ledger, redactor=redactor).deliver(found, Reading())


class _Nowhere:
    """A ledger that takes everything and keeps nothing."""

    def __init__(self) -> None:
        self.events = 0

    def push(
        self, session_id: str, events: Iterable[Mapping[str, Any]], open: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        count = len(list(events))
        self.events += count
        return {"stored": count, "duplicates": 0, "conflicts": [], "rejected": [], "high_seq": 0}

    def create_project(self, title: str, **fields: Any) -> dict[str, Any]:
        return {"id": title}


# The transcript


def _write(path: Path) -> None:
    """Prompts, thoughts, and commands with outputs of very different lengths; between them the rows that a harness
    writes for itself, most of a real file."""
    random = Random(SEED)
    with path.open("wb") as file:
        number = 0
        while file.tell() < FILE_BYTES:
            number += 1
            for one in _turn(number, random):
                file.write(orjson.dumps(one) + b"\n")


def _turn(number: int, random: Random) -> list[dict[str, Any]]:
    call_id, source = f"toolu_{number:024}", {"id": f"msg_{number}", "model": "bench-1"}
    usage = {"input_tokens": 9, "output_tokens": number % 900, "cache_read_input_tokens": 40_000}
    thought = {"type": "thinking", "thinking": _words(random, 80)}
    call = {"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": f"rg -n {_words(random, 3)} src"}}
    output = _words(random, int(random.paretovariate(0.9) * 20) % 3000)
    result = {"type": "tool_result", "tool_use_id": call_id, "content": output}
    progress = {
        "type": "hook_progress",
        "hookName": "PostToolUse",
        "command": _words(random, 90),
        "rows": [usage] * 4,
    }
    return [
        _row("user", {"content": _words(random, 30)}),
        _row("assistant", {**source, "content": [thought], "usage": usage}),
        *[_row("progress", {}, data=progress)] * 8,
        _row("assistant", {**source, "content": [call], "usage": usage}),
        _row("user", {"content": [result]}, toolUseResult={"stdout": output, "stderr": "", "interrupted": False}),
    ]


def _row(type_: str, message: dict[str, Any], **fields: Any) -> dict[str, Any]:
    about = {"parentUuid": "p", "sessionId": "bench-session", "cwd": "/home/dev/app", "version": "2.1.0"}
    return {**about, "type": type_, "message": message, "timestamp": "2026-03-01T10:00:00.000Z", **fields}


_VOCABULARY = (
    "def",
    "return",
    "token",
    "import",
    "self.value",
    "parse(line)",
    "for",
    "each",
    "event",
    "in",
    "{}",
    "==",
)


def _words(random: Random, count: int) -> str:
    return " ".join(random.choices(_VOCABULARY, k=count))
