from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest

from ledger.client.redaction import redact
from ledger.daemons.sweep.judging.verdict import JudgeFailed, Verdict, read

TODAY = date(2026, 3, 9)
CANDIDATES = {f"C{n:02}": None for n in range(1, 5)}
KNOWN = {"E01", "E02"}

GOOD: dict[str, Any] = {
    "title": "Force push removed two days of commits",
    "date": "2026-03-01",
    "severity": "HIGH",
    "category": "data-loss",
    "what": "The agent force pushed main.",
    "cost": "Two days of work.",
    "lesson": "Never force push main.",
    "candidates": ["C01", "C02"],
    "why": "Nobody had asked for it.",
}


def verdict(*incidents: Any, excluded: Any = (), patterns: Any = "") -> dict[str, Any]:
    return {"incidents": list(incidents), "excluded": list(excluded), "patterns": patterns}


def judged(answer: object) -> Verdict:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return read(text, CANDIDATES, KNOWN, redact, today=TODAY)


def test_a_verdict_is_read_as_it_was_given() -> None:
    excluded = {"candidates": ["C03"], "reason": "A scratch folder.", "duplicate_of": None}
    seen = judged(verdict(GOOD, excluded=[excluded], patterns="All on Mondays."))
    [incident] = seen.incidents
    assert (incident.title, incident.date, incident.severity, incident.category) == (
        "Force push removed two days of commits",
        "2026-03-01",
        "HIGH",
        "data-loss",
    )
    assert incident.candidates == ("C01", "C02")
    assert [(one.candidates, one.reason, one.duplicate_of) for one in seen.excluded] == [
        (("C03",), "A scratch folder.", "")
    ]
    assert (seen.patterns, seen.unmentioned, seen.rejected) == ("All on Mondays.", ("C04",), ())


@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "```json\n{}\n```",
        "Here is what I found, in {{braces}} too:\n\n{}\n\nI hope this helps.",
        'First {{"a": 1}}, then ```\n{}```',
    ],
)
def test_fences_and_prose_around_it_are_tolerated(around: str) -> None:
    assert len(judged(around.format(json.dumps(verdict(GOOD)))).incidents) == 1


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "I found no incidents today.",
        "{}",
        "[]",
        json.dumps({"incidents": "none"}),
        json.dumps(verdict(GOOD))[:-40],
        json.dumps(verdict(GOOD))[:200],
        "{" * 100_000,
        "[" * 100_000,
        '{"incidents": ' + "[" * 100_000,
    ],
)
def test_prose_and_half_a_verdict_are_none(answer: str) -> None:
    with pytest.raises(JudgeFailed, match="answered no verdict"):
        judged(answer)


def test_what_a_judge_said_instead_is_redacted() -> None:
    with pytest.raises(JudgeFailed) as failed:
        judged("I saw password=hunter2hunter2 and stopped.")
    assert "hunter2" not in failed.value.detail


@pytest.mark.parametrize("field", ["title", "what", "cost", "lesson"])
@pytest.mark.parametrize("value", [None, "", "   ", 7, ["x"], "—…"])
def test_an_incident_without_a_text_is_rejected_alone(field: str, value: object) -> None:
    other = GOOD | {"title": "Another", "candidates": ["C03"]}
    seen = judged(verdict(GOOD | {field: value}, other))
    assert [one.title for one in seen.incidents] == ["Another"]
    [rejected] = seen.rejected
    assert f"no {field}" in rejected.why
    assert "C01" not in seen.unmentioned  # it was judged, badly


@pytest.mark.parametrize("severity", ["CRITICAL", "", None, 3, "HIGH or LOW"])
def test_another_severity_is_rejected_alone(severity: object) -> None:
    seen = judged(verdict(GOOD | {"severity": severity}))
    assert (len(seen.incidents), len(seen.rejected)) == (0, 1)
    assert "severity" in seen.rejected[0].why


def test_a_severity_is_read_whatever_its_case() -> None:
    assert judged(verdict(GOOD | {"severity": " medium "})).incidents[0].severity == "MEDIUM"


def test_unknown_numbers_are_dropped_and_short_ones_understood() -> None:
    given = ["C99", "E01", "c1", "C002", "C02", None, {"id": "C03"}, "C0"]
    seen = judged(verdict(GOOD | {"candidates": given}))
    assert seen.incidents[0].candidates == ("C01", "C02")


@pytest.mark.parametrize(
    "given", ["2026-13-01", "yesterday", "2026-03-10", "1999-01-01", None, 20260301, "٢٠٢٦-03-01"]
)
def test_a_bad_date_falls_back(given: object) -> None:
    assert judged(verdict(GOOD | {"date": given})).incidents[0].date == ""


@pytest.mark.parametrize("given", ["Data-Loss", "data-loss "])
def test_a_category_is_read_whatever_its_case(given: str) -> None:
    assert judged(verdict(GOOD | {"category": given})).incidents[0].category == "data-loss"


@pytest.mark.parametrize("given", ["sabotage", None, 3, ""])
def test_an_unknown_category_is_other(given: object) -> None:
    assert judged(verdict(GOOD | {"category": given})).incidents[0].category == "other"


def test_of_exclusions_only_known_numbers_count() -> None:
    rows = [
        {"candidates": ["C01", "C77"], "reason": "known", "duplicate_of": "E1"},
        {"candidates": ["C02"], "reason": "", "duplicate_of": "E99"},
        {"candidates": ["C88"], "reason": "of nobody"},
        "prose",
        {"candidates": "C03", "reason": "as a text"},
    ]
    seen = judged(verdict(excluded=rows))
    assert [(one.candidates, one.duplicate_of) for one in seen.excluded] == [
        (("C01",), "E01"),
        (("C02",), ""),
        (("C03",), ""),
    ]
    assert seen.excluded[1].reason == "no reason was given"
    assert seen.unmentioned == ("C04",)


def test_texts_are_one_redacted_line_of_bounded_length() -> None:
    nasty = "a\n## Heading · 2026-01-01 · HIGH\r\n\x1b[31m\u202eb\u200b token=ghp_" + "A1b2" * 9 + " " + "x" * 10_000
    seen = judged(verdict(GOOD | {"what": nasty}))
    what = seen.incidents[0].what
    assert "\n" not in what
    assert what.startswith("a ## Heading · 2026-01-01 · HIGH [31m b token=[REDACTED]")
    assert len(what) <= 2_000


def test_what_is_no_object_is_rejected_alone() -> None:
    seen = judged(verdict("prose", None, GOOD))
    assert (len(seen.incidents), len(seen.rejected)) == (1, 2)


def test_more_incidents_than_can_be_filed_at_once_are_rejected() -> None:
    seen = judged(verdict(*(GOOD | {"title": f"Number {n}"} for n in range(300))))
    assert len(seen.incidents) == 100
    assert "200 more" in seen.rejected[0].why
