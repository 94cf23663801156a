from __future__ import annotations

import pytest

from ledger.http import page_words
from tests.unit.http import page_samples as samples


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.01, "0 s"),
        (0.42, "0.4 s"),
        (12, "12 s"),
        (200, "3 min 20 s"),
        (3600, "1 h"),
        (7500, "2 h 5 min"),
        (273_600, "3 d 4 h"),
    ],
)
def test_a_duration_is_said_in_two_units(seconds: float, said: str) -> None:
    assert page_words.duration(seconds) == said


@pytest.mark.parametrize(
    ("count", "said"), [(850, "850 tokens"), (48_200, "48 k tokens"), (1_249_000, "1.2 M tokens")]
)
def test_many_tokens_are_rounded(count: int, said: str) -> None:
    assert page_words.tokens(count) == said


def test_a_time_between_what_is_no_time_is_nothing() -> None:
    assert page_words.seconds_between("2026-01-01T00:00:00Z", "2026-01-01T00:00:01.5Z") == 1.5
    assert page_words.seconds_between("2026-01-01T00:00:01Z", "2026-01-01T00:00:00Z") is None
    assert page_words.seconds_between(None, "2026-01-01T00:00:00Z") is None
    assert page_words.seconds_between("soon", "2026-01-01T00:00:00") is None


def test_the_headline_says_what_to_do_and_else_what_is_silent() -> None:
    assert page_words.headline(samples.fleet()) == "One thing needs you, one failed"
    assert page_words.headline(samples.fleet(needs_you=[], failed=[])) == "Nothing needs you, one is silent"
    assert page_words.headline(samples.empty_fleet()) == "Nothing needs you"


def test_the_headline_counts_the_high_incidents_that_nobody_has_acknowledged() -> None:
    assert page_words.headline(samples.empty_fleet(), 1) == "One new HIGH incident"
    assert page_words.headline(samples.fleet(failed=[]), 2) == "One thing needs you, two new HIGH incidents"


def test_agents_are_counted_with_their_hosts() -> None:
    def saddle(host: str | None, working: int) -> dict[str, object]:
        return {**samples.fleet()["saddles"][0], "name": f"on {host}", "host": host, "working": working}

    two = samples.fleet(saddles=[saddle("mole", 1), saddle("mole", 2), saddle("quay", 0)])
    assert page_words.agents_at_work(two) == "Three agents are at work on one host."
    assert page_words.agents_at_work(samples.empty_fleet()) == "Nobody is at work."
