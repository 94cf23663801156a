"""What a reply decides."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.daemons.remediation.verdicts import NoVerdict, RepairVerdict, Verdict, self_repair, supervision
from projections.remediation.plan import Rules
from tests.unit.daemons.remediation.given import repaired, verdict

RULES = Rules()


@pytest.mark.parametrize(
    "text",
    [
        'LEDGERD_SUPERVISION {"decision": "correct", "feedback": "- mend it"}',
        'First words.\n  LEDGERD_SUPERVISION   {"feedback": "- mend it", "decision": "correct"}  \n\nLast words.',
        'LEDGERD_SUPERVISION{"decision":"correct","feedback":" - mend it "}\r\n',
        'LEDGERD_SUPERVISION {"decision": "block", "feedback": "x"}\n'
        'LEDGERD_SUPERVISION {"decision": "correct", "feedback": "- mend it", "more": [1]}',
        'LEDGERD_SUPERVISION {"decision": "correct", "feedback": "- mend it"}\nIt says LEDGERD_SUPERVISION {}.',
    ],
)
def test_the_last_line_of_its_kind_counts(text: str) -> None:
    assert supervision(text, RULES) == Verdict("correct", "- mend it", 1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "holds no line"),
        ("I approve.", "holds no line"),
        ('ledgerd_supervision {"decision": "approve"}', "holds no line"),
        ('LEDGERD_SUPERVISIONS {"decision": "approve"}', "holds no line"),
        ("LEDGERD_SUPERVISION approve", "holds no line"),
        ('LEDGERD_SUPERVISION {"decision": "approve"', "JSON is broken"),
        ('LEDGERD_SUPERVISION {"decision": "approve"} LEDGERD_SUPERVISION {"decision": "block"}', "JSON is broken"),
        ("LEDGERD_SUPERVISION {'decision': 'approve'}", "JSON is broken"),
        ('LEDGERD_SUPERVISION {"decision": "Approve"}', "holds no decision"),
        ('LEDGERD_SUPERVISION {"decision": ["approve"]}', "holds no decision"),
        ("LEDGERD_SUPERVISION {}", "holds no decision"),
        (verdict("correct", "  \n "), "says correct without feedback"),
        ('LEDGERD_SUPERVISION {"decision": "block"}', "says block without feedback"),
        ('LEDGERD_SUPERVISION {"decision": "block", "feedback": {"a": 1}}', "holds a feedback that is no text"),
        (verdict("approve", "x" * 2_001), "holds a feedback of 2001 characters"),
        ("LEDGERD_SUPERVISION " + '{"a":' * 5_000, "JSON is broken"),
    ],
)
def test_anything_else_is_no_verdict_and_says_why(text: str, why: str) -> None:
    said = supervision(text, RULES)
    assert isinstance(said, NoVerdict)
    assert why in said.why


def test_the_bound_is_in_characters_and_is_itself_allowed() -> None:
    said = supervision(verdict("block", "ä" * 2_000), RULES)
    assert isinstance(said, Verdict)
    assert len(said.feedback) == 2_000


@pytest.mark.parametrize(
    ("feedback", "more", "findings"),
    [
        ("mend it", {}, 1),
        ("- one\n- two\n* three", {}, 3),
        ("1. one\n2) two", {}, 2),
        ("x", {"findings": 7}, 7),
        ("x", {"findings": ["a", "b"]}, 2),
        ("- a\n- b", {"findings": True}, 2),
        ("- a\n- b", {"findings": -1}, 2),
    ],
)
def test_findings_are_what_the_verdict_says_else_the_points_of_its_feedback(
    feedback: str, more: dict[str, Any], findings: int
) -> None:
    said = supervision(verdict("correct", feedback, **more), RULES)
    assert isinstance(said, Verdict)
    assert said.findings == findings


def test_an_approval_finds_nothing() -> None:
    assert supervision(verdict("approve", "- fine\n- good"), RULES) == Verdict("approve", "- fine\n- good", 0)


def test_a_repair_says_fixed_with_an_addendum_or_asks_for_the_owner() -> None:
    assert self_repair(repaired("fixed", "done", "mind it"), RULES) == RepairVerdict("fixed", "done", "mind it")
    assert self_repair('LEDGERD_SELF_REPAIR {"decision": "fixed"}', RULES) == RepairVerdict("fixed", "", "")
    assert self_repair(repaired("needs_user", "deploy", "mind it"), RULES) == RepairVerdict(
        "needs_user", "deploy", ""
    )


@pytest.mark.parametrize(
    "text",
    [
        "fixed",
        repaired("approve"),
        repaired("needs_user"),
        repaired("fixed", "f" * 2_001),
        repaired("fixed", "f", "a" * 4_001),
        'LEDGERD_SELF_REPAIR {"decision": "fixed", "prompt_addendum": 5}',
        verdict("approve"),
    ],
)
def test_any_other_reply_of_a_repair_is_none(text: str) -> None:
    assert isinstance(self_repair(text, RULES), NoVerdict)


def test_the_prefix_is_the_runs() -> None:
    rules = Rules(prefix="ACME")
    assert isinstance(supervision(verdict("approve"), rules), NoVerdict)
    assert isinstance(supervision(verdict("approve").replace("LEDGERD", "ACME"), rules), Verdict)


@given(st.text(), st.sampled_from(["", "LEDGERD_SUPERVISION {", "LEDGERD_SELF_REPAIR {"]), st.text())
def test_no_text_makes_it_stumble(before: str, marker: str, after: str) -> None:
    for read in (supervision, self_repair):
        assert read(f"{before}\n{marker}{after}", RULES) is not None


@given(st.text(max_size=300))
def test_what_was_said_is_what_is_read(feedback: str) -> None:
    said = supervision("LEDGERD_SUPERVISION " + json.dumps({"decision": "approve", "feedback": feedback}), RULES)
    assert said == Verdict("approve", feedback.strip(), 0)
