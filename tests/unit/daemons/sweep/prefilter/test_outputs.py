"""What failed or warned, as outputs show it."""

from __future__ import annotations

import pytest

from ledger.daemons.sweep.model import FAILED, WARNED
from tests.unit.daemons.sweep.prefilter.told import Story


def test_a_failure_is_shown_with_the_lines_around_it_and_a_warning_is_told_from_it() -> None:
    output = "one\ntwo\nthree\nOut of memory: Killed process 9 (x)\nfour"
    candidate = Story().runs("make thing", output, 137).only("out-of-memory")
    assert candidate.kind == FAILED
    assert candidate.snippet == "Out of memory: Killed process 9 (x)"
    assert candidate.evidence == ("two", "three", "Out of memory: Killed process 9 (x)", "four")
    assert Story().runs("make thing", "HEAD detached at 1234567").only("detached-head").kind == WARNED
    assert Story().runs("make thing", "HEAD detached at 1234567", 1).rules() == []


@pytest.mark.parametrize(
    "command",
    [
        "cat notes.md",
        "grep -rn Traceback src",
        "rg x | head -5",
        "cd src && sed -n 1,5p a.py",
        "git log -p",
        "git diff",
    ],
)
def test_what_stands_in_a_file_that_was_looked_at_did_not_happen(command: str) -> None:
    assert Story().runs(command, "Traceback (most recent call last):\nPermission denied").rules() == []


@pytest.mark.parametrize("command", ["tail -50 app.log", "journalctl -u app", "docker logs web", "cat /var/log/x"])
def test_what_stands_in_a_log_did_happen(command: str) -> None:
    assert Story().runs(command, "Traceback (most recent call last):").rules() == ["traceback"]


def test_tools_that_only_read_tell_of_nothing_but_their_own_failure() -> None:
    assert Story().calls("Read", {"file_path": "a"}, "Traceback (most recent call last):").rules() == []
    assert Story().calls("Read", {"file_path": "a"}, "EACCES: permission denied", is_error=True).rules() == ["denied"]


def test_an_error_of_the_harness_and_a_line_of_a_command_count() -> None:
    assert Story().add("error", "harness", message="usage limit reached").rules() == ["spend-limit"]
    assert Story().add("output", "stderr", stream="stderr", text="Segmentation fault").rules() == ["segfault"]


def test_a_result_whose_call_is_not_known_is_read() -> None:
    assert Story().add("tool_result", "harness", exit_code=1, stdout="No space left on device").rules() == [
        "disk-full"
    ]


def test_the_same_trouble_is_counted_whatever_its_numbers() -> None:
    story = Story()
    for number in range(6):
        story.runs(f"make n{number}", f"Killed process {number}00 (node)", 137)
    assert story.only("out-of-memory").count == 6


def test_of_one_rule_there_are_only_so_many_different_ones_in_a_session() -> None:
    story = Story()
    for letter in "abcdefghijklmnopqrstuvwxyz":
        story.runs("make x", f"permission to use {letter}{letter} has been denied", 1)
    found = story.candidates()
    assert [candidate.rule for candidate in found.found].count("denied") == 12
    assert found.left_out == 14
