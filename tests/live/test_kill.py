"""A server that is killed again and again under load keeps every promise it made."""

from __future__ import annotations

from random import SystemRandom

from bundles.crash import crash
from bundles.runner import Entry, run

KILLS = 20


def test_twenty_kills_at_random_moments_lose_and_double_nothing() -> None:
    seed = SystemRandom().getrandbits(32)
    entry = Entry("crash", f"{KILLS} kills under 16 pushers", False, lambda scenario: crash(scenario, KILLS))
    report = run(entry, seed=seed)
    assert report.verdict == "ok", "\n".join(report.lines())
    survived = [check for check in report.checks if check.sentence.startswith("after kill")]
    assert len(survived) == KILLS
