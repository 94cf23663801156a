"""Finding scenarios, and what becomes of one that stumbles."""

from __future__ import annotations

import pytest

from bundles import replaying
from bundles.rig.server import Server
from bundles.runner import Entry, Scenario, discover, run


def test_every_scenario_is_found_once_by_its_name() -> None:
    names = [entry.name for entry in discover()]
    assert {"replay", "churn", "crash", "lost-answer"} <= set(names)
    assert len(names) == len(set(names))
    assert all(entry.title for entry in discover())


def test_a_recorded_bundle_has_no_scenarios_name() -> None:
    stems = {path.stem for path in replaying.recorded()}
    assert stems
    assert stems.isdisjoint(entry.name for entry in discover())


def test_a_scenario_that_stumbles_is_a_failed_check_that_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Server, "start", lambda _: None)
    monkeypatch.setattr(Scenario, "token", lambda *_: "token")

    def stumble(scenario: Scenario) -> None:
        scenario.equal("one is one", 1, 1)
        raise KeyError("status")

    report = run(Entry("stumble", "it stumbles", False, stumble), seed=1)
    assert [check.verdict for check in report.checks] == ["ok", "FAIL"]
    assert "KeyError at test_runner.py" in report.checks[1].seen
    assert report.verdict == "FAIL"
