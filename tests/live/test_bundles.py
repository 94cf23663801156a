"""Every scenario, and every recorded bundle under every fault, over a live server."""

from __future__ import annotations

from pathlib import Path
from random import SystemRandom

import pytest

from bundles import replaying
from bundles.faults import VARIANTS, Variant
from bundles.rig.report import Report
from bundles.runner import Entry, discover, run

ELSEWHERE = {"crash", "outbox"}  # run by test_kill, with more kills, and by test_outbox
KILLED = {"remediation"}  # here only with SIGKILL, which is harder on it than a server that ends well
ENTRIES = [entry for entry in discover() if entry.name not in ELSEWHERE]
WAYS = [
    (entry, kill)
    for entry in ENTRIES
    for kill in ([True] if entry.name in KILLED else [False, True] if entry.restarts else [False])
]


@pytest.fixture
def seed() -> int:
    return SystemRandom().getrandbits(32)


def show(report: Report) -> str:
    return "\n".join(report.lines())


@pytest.mark.parametrize(("entry", "kill"), WAYS, ids=lambda each: getattr(each, "name", "SIGKILL" if each else ""))
def test_a_scenario_is_green(entry: Entry, kill: bool, seed: int) -> None:
    report = run(entry, seed=seed, kill=kill)
    assert report.verdict == "ok", show(report)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: str(variant.name))
@pytest.mark.parametrize("path", replaying.recorded(), ids=lambda path: str(path.stem))
def test_a_recorded_bundle_tells_the_same_story_under_faults(path: Path, variant: Variant, seed: int) -> None:
    report = replaying.replay(path, variant, seed=seed)
    assert report.verdict == "ok", show(report)
