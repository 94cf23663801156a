"""What redaction finds of a corpus of made-up secrets and look-alikes, and what it costs.

The corpus (`tests/corpus`) is a written one, by those who wrote the patterns: its recall says that nothing has got
worse, not what will be found in the next transcript. Its texts are cleaned in a payload, as transcripts are.

The speed is that of payloads without secrets, nearly all there are, and of the corpus, which is nothing else: with
Hyperscan, and as it is where there is none.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from unittest.mock import patch

import orjson

from ledger.client.redaction import Redactor, screening
from tests.bench.results import Finding, Report, Sample, ratio, row
from tests.corpus.redaction import NAMED, Count, counted, samples

ROUNDS = 7
SEED = 20_260_302
PAYLOADS, WORDS = 400, 300

LOADED, WITH, WITHOUT = "parsed by orjson alone", "redacted, with Hyperscan", "redacted, with re"
_VOCABULARY = (
    "return",
    "token",
    "self.key",
    "==",
    "password",
    "def",
    "secret,",
    "x[i]:",
    "https://example.org/a",
    "{}",
)


def run(folder: Path, progress: Callable[[str], None]) -> Report:
    progress("redaction, the corpus")
    counts = counted(_cleaned, samples())
    found: dict[str, list[Sample]] = defaultdict(list)
    payloads = _payloads()
    _use(hyperscan=True)  # compiled before it is measured: once in a process
    for number in range(ROUNDS):
        progress(f"redaction, round {number + 1} of {ROUNDS}")
        found[LOADED].append(_sample(payloads, lambda: [orjson.loads(payload) for payload in payloads]))
        for name, hyperscan in ((WITH, True), (WITHOUT, False)):
            screen = _use(hyperscan=hyperscan)
            with patch.object(screening, "_screen_for", lambda size, screen=screen: screen):
                found[name].append(_sample(payloads, lambda: Redactor().redact_payloads(payloads)))
    return Report(
        f"Payloads of {sum(map(len, payloads)):,} bytes without a secret (a request is one pass over them)",
        ROUNDS,
        [row(name, found[name]) for name in (LOADED, WITH, WITHOUT)],
        [
            ratio("redacted with Hyperscan / parsed", found[WITH], found[LOADED]),
            ratio("redacted with re / parsed", found[WITHOUT], found[LOADED]),
        ],
        [*(_finding(kind, count) for kind, count in counts.items()), _finding("all", _all(counts.values()))],
    )


def _use(*, hyperscan: bool) -> screening.Screen:
    return (hyperscan and screening.screen_in_hyperscan()) or screening.screen_in_python


def _cleaned(text: str) -> str:
    cleaned: str = orjson.loads(Redactor().redact_payload(orjson.dumps([text])))[0]
    return cleaned


def _sample(payloads: list[bytes], work: Callable[[], object]) -> Sample:
    began, cpu_began = time.perf_counter(), time.process_time()
    work()
    return Sample(len(payloads), 1, time.perf_counter() - began, time.process_time() - cpu_began)


def _payloads() -> list[bytes]:
    random = Random(SEED)
    return [orjson.dumps({"text": " ".join(random.choices(_VOCABULARY, k=WORDS))}) for _ in range(PAYLOADS)]


def _all(counts: Iterable[Count]) -> Count:
    return Count(*map(sum, zip(*counts, strict=True)))


def _finding(kind: str, count: Count) -> Finding:
    aim = 1.0 if kind in NAMED else None
    return Finding(kind, count.secrets, count.found, count.lookalikes, count.changed, aim)
