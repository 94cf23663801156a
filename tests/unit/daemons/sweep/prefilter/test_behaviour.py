"""How a session went: what no single moment shows."""

from __future__ import annotations

import pytest

from ledger.daemons.sweep.model import BEHAVED, SAID
from tests.unit.daemons.sweep.prefilter.told import Story


def test_the_same_command_that_fails_again_and_again_is_one_candidate_with_its_number() -> None:
    story = Story()
    for number in range(7):
        story.runs("npm run migrate", f"error {number}", 1)
    candidate = story.only("fails-again")
    assert candidate.kind == BEHAVED
    assert candidate.snippet == "failed 7 times in a row: npm run migrate"
    assert candidate.turn == ()


def test_a_success_in_between_begins_the_count_again() -> None:
    story = Story()
    for _ in range(3):
        story.runs("npm run x", "e", 1).runs("npm run x", "e", 1).runs("npm run x", "fine")
    assert story.rules() == []


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("Task", {"prompt": "Port the parser", "subagent_type": "x"}),
        ("Bash", {"command": "npm run import-all", "run_in_background": True}),
        ("Bash", {"command": "nohup ./train.sh > train.log"}),
        ("Bash", {"command": "./train.sh &"}),
    ],
)
def test_work_that_is_started_twice_is_a_candidate(tool: str, args: dict[str, object]) -> None:
    assert Story().calls(tool, args, "started").rules() == []
    assert Story().calls(tool, args, "started").calls(tool, args, "started").rules() == ["started-twice"]


def test_work_that_was_stopped_may_be_started_again() -> None:
    story = Story().runs("./serve.sh &", "").runs("pkill -f serve.sh", "").runs("./serve.sh &", "")
    assert story.rules() == ["kill-wide"]


def test_spend_without_progress_is_told_in_numbers() -> None:
    story = Story()
    for number in range(15):
        story.spends(f"m{number}", 1_000, 0.10).spends(f"m{number}", 2_000, 0.20)  # the last report counts
        story.calls("Edit", {"old": str(number)}, "no match", is_error=True)
    story.runs("ls", "a")
    snippet = story.only("spent-idle").snippet
    assert snippet.startswith("15 calls in a row brought nothing new: 15 failed, 0 repeated a result")
    assert snippet.endswith("; 14 requests, 28,000 tokens, 2.80 USD")


def test_the_same_result_again_is_no_progress_and_a_new_one_is() -> None:
    same = Story()
    changing = Story()
    for number in range(20):
        same.calls("Read", {"file_path": "a"}, "text")
        changing.calls("Read", {"file_path": "a"}, f"text {number}")
    assert same.rules() == ["spent-idle"]
    assert changing.rules() == []


def test_a_person_who_speaks_ends_a_stretch_without_progress() -> None:
    story = Story()
    for number in range(20):
        story.calls("Edit", {"old": str(number)}, "no match", is_error=True)
        if number == 9:
            story.user("go on")
    assert story.rules() == []


CLAIMS = ["All tests pass now.", "All 84 tests are passing.", "✅ Tests: all pass", "The bug is now fixed.",
          "Successfully implemented the parser.", "Everything works."]  # fmt: skip


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claim_that_the_last_check_contradicts_is_a_candidate_with_that_check(claim: str) -> None:
    story = Story().runs("pytest -q", "F.\n1 failed, 1 passed", 1).agent(f"Good.\n{claim}")
    candidate = story.only("claim-disagrees")
    assert candidate.kind == SAID
    assert candidate.snippet == claim
    assert candidate.evidence[0] == "ran: pytest -q"
    assert "1 failed, 1 passed" in candidate.evidence


@pytest.mark.parametrize(
    "claim",
    [
        "All tests should pass after this.",
        "Let me make sure that all tests pass.",
        "Not all tests pass yet.",
        "Once everything works I will commit.",
        "Do all tests pass?",
        "I'm looking at the failure.",
    ],
)
def test_a_hope_a_doubt_or_a_plan_is_no_claim(claim: str) -> None:
    assert Story().runs("pytest -q", "1 failed", 1).agent(claim).rules() == []


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claim_after_a_check_that_passed_is_none(claim: str) -> None:
    assert Story().runs("pytest", "1 failed", 1).runs("pytest", "2 passed").agent(claim).rules() == []


def test_a_pipe_that_hides_the_exit_code_hides_no_failure() -> None:
    story = Story().runs("npm test 2>&1 | tail -5", "Tests: 2 failed, 3 passed").agent("All tests pass.")
    assert story.rules() == ["claim-disagrees"]
    story = Story().runs("mix test | tail -2", "84 tests, 0 failures").agent("All tests pass.")
    assert story.rules() == []


def test_a_claim_about_tests_is_held_against_tests_alone() -> None:
    story = Story().runs("pytest -q", "3 passed").runs("ruff check .", "Found 3 errors.", 1)
    assert story.agent("All tests pass.").rules() == []
    assert story.agent("The linting checks are green.").rules() == ["claim-disagrees"]


def test_a_failed_check_is_held_against_one_claim() -> None:
    story = Story().runs("pytest", "1 failed", 1).agent("All tests pass.").agent("All tests pass, done.")
    assert story.only("claim-disagrees").count == 1


def test_work_that_is_reported_done_after_a_failed_check_is_a_candidate() -> None:
    story = Story().runs("make test", "1 failed", 2).add("result", "harness", state="done", summary="Ported.")
    candidate = story.only("done-disagrees")
    assert candidate.snippet == "Ported."
    assert candidate.evidence[0] == "ran: make test"
    story = Story().runs("make test", "1 failed", 2).add("result", "harness", state="failed")
    assert story.rules() == []
