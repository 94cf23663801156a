"""What a run has shown."""

from __future__ import annotations

import pytest

from bundles.rig.report import Check, Report, Verdict


@pytest.mark.parametrize(
    ("verdicts", "verdict"),
    [
        (["ok", "ok"], "ok"),
        (["ok", "FAIL", "unknown"], "FAIL"),
        (["ok", "unknown"], "unknown"),
        ([], "unknown"),
    ],
)
def test_a_verdict_is_green_only_if_every_check_is(verdicts: list[Verdict], verdict: Verdict) -> None:
    report = Report("n", "t", "", 1, [Check("a sentence", each) for each in verdicts])
    assert report.verdict == verdict
    assert report.as_json()["verdict"] == verdict


def test_the_lines_show_the_seed_and_what_was_seen_where_a_check_failed() -> None:
    checks = [Check("one row", "FAIL", "2", "1"), Check("no block", "ok", "0", "0")]
    lines = Report("churn", "said once", "restarts by SIGKILL", 42, checks, 1.5, "boom").lines()
    assert lines[0] == "churn (restarts by SIGKILL): said once [seed 42]"
    assert lines[1:4] == ["  FAIL    one row", "          saw 2", "          expected 1"]
    assert lines[4] == "  ok      no block  (0)"
    assert lines[-1] == "    boom"
