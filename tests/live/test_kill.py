"""A server that is killed again and again under load keeps every promise it made."""

from __future__ import annotations

from random import SystemRandom

import pytest

from bundles import crash
from bundles.runner import discover, run

KILLS = 20


def test_twenty_kills_at_random_moments_lose_and_double_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crash, "KILLS", KILLS)
    [entry] = [entry for entry in discover() if entry.name == crash.NAME]
    report = run(entry, seed=SystemRandom().getrandbits(32))
    assert report.verdict == "ok", "\n".join(report.lines())
    survived = [check for check in report.checks if check.sentence.startswith("after kill")]
    assert len(survived) == KILLS
