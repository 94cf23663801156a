"""What a part of the bench finds: samples, their spread over the rounds, and ratios with what they should reach."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median

import msgspec


class Sample(msgspec.Struct, frozen=True):
    """One measurement of one thing. `cpu_s` is the measured process's; `peak_mib` its most since it started."""

    events: int
    requests: int
    seconds: float
    cpu_s: float
    peak_mib: float | None = None
    latency_p50_ms: float | None = None
    latency_p99_ms: float | None = None
    pushers_cpu_s: float | None = None

    @property
    def events_per_s(self) -> float:
        return self.events / self.seconds

    @property
    def requests_per_s(self) -> float:
        return self.requests / self.seconds


class Spread(msgspec.Struct, frozen=True):
    """A number over several rounds."""

    median: float
    min: float
    max: float


class Row(msgspec.Struct, frozen=True):
    """One thing over all rounds. Latencies, memory and processor time are medians; `pushers_busy` is the share of a
    core that the pushers used, near 1 where they and not the server set the pace."""

    name: str
    events_per_s: Spread
    requests_per_s: Spread
    cpu_s_per_million_events: float
    peak_mib: float | None
    latency_p50_ms: float | None
    latency_p99_ms: float | None
    pushers_busy: float | None


class Ratio(msgspec.Struct, frozen=True):
    """`aim` is the least that the median should reach."""

    name: str
    value: Spread
    aim: float | None = None


class Finding(msgspec.Struct, frozen=True):
    """Of what there was to find of a kind, how much was found (recall), and how much of what was found was it
    (precision); None where there was nothing of the sort. `aim` is the least that the recall should reach."""

    kind: str
    there: int
    found: int
    others: int
    wrongly_found: int
    aim: float | None = None

    @property
    def recall(self) -> float | None:
        return self.found / self.there if self.there else None

    @property
    def precision(self) -> float | None:
        all_found = self.found + self.wrongly_found
        return self.found / all_found if all_found and self.there else None


class Report(msgspec.Struct, frozen=True):
    title: str
    rounds: int
    rows: list[Row]
    ratios: list[Ratio]
    findings: list[Finding] = []


def spread(values: Iterable[float]) -> Spread:
    found = list(values)
    return Spread(median(found), min(found), max(found))


def row(name: str, samples: Sequence[Sample]) -> Row:
    def middle(value: Callable[[Sample], float | None]) -> float | None:
        known = [found for sample in samples if (found := value(sample)) is not None]
        return median(known) if known else None

    return Row(
        name,
        spread(sample.events_per_s for sample in samples),
        spread(sample.requests_per_s for sample in samples),
        median(sample.cpu_s / sample.events * 1e6 for sample in samples),
        middle(lambda sample: sample.peak_mib),
        middle(lambda sample: sample.latency_p50_ms),
        middle(lambda sample: sample.latency_p99_ms),
        middle(lambda sample: sample.pushers_cpu_s and sample.pushers_cpu_s / sample.seconds),
    )


def ratio(name: str, ours: Sequence[Sample], theirs: Sequence[Sample], aim: float | None = None) -> Ratio:
    """Requests per second of ours over theirs, round by round: what disturbs a round disturbs both. The workloads
    must be alike."""
    pairs = zip(ours, theirs, strict=True)
    return Ratio(name, spread(our.requests_per_s / their.requests_per_s for our, their in pairs), aim)
