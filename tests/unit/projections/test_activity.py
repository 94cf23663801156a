from __future__ import annotations

import time
from typing import Any

import pytest

from projections.activity import LINE_CHARS_MAX, carries_remark, command_line
from tests.unit.projections.story import Story

REMARKS = [
    "ledgerd comment 'done'",
    "echo done | ledgerd comment",
    "echo done|ledgerd comment",
    "cat << 'EOF' | ledgerd comment\nhalf way\nEOF",
    "ledgerd comment <<EOF\nhalf way\nEOF",
    "LEDGERD_URL=http://127.0.0.1:1 ledgerd comment hi",
    "env A=b /opt/venv/bin/ledgerd comment hi",
    "~/.local/bin/ledgerd comment hi",
    '"/opt/my tools/ledgerd" comment hi',
    "(ledgerd comment hi)",
    "$(which ledgerd) --version; ledgerd  comment hi",
    "ledgerd --url http://127.0.0.1:1 comment hi",
    "ledgerd --quiet --token=x comment hi",
    "make test && ledgerd \\\n  comment hi",
    "bash -lc 'ledgerd comment hi'",
    "C:\\tools\\ledgerd.exe comment hi",
]
NO_REMARKS = [
    "make test",
    "git commit -m 'a comment'",
    "ledgerd tail 7",
    "ledgerd goal comment-7",
    "myledgerd comment",
    "ledgerd commentary",
    "grep ledgerd README.md # comment",
    "echo comment | ledgerd push",
]


@pytest.mark.parametrize("command", REMARKS)
def test_a_command_that_carries_a_remark_is_known(command: str) -> None:
    assert carries_remark(command)
    assert command_line({"tool": "bash", "args": {"command": command}}) is None


@pytest.mark.parametrize("command", NO_REMARKS)
def test_a_command_that_carries_none_is_shown(command: str) -> None:
    assert not carries_remark(command)
    assert command_line({"tool": "bash", "args": {"command": command}}) == command


@pytest.mark.parametrize(
    "args",
    [
        {"cmd": ["bash", "-lc", "echo hi | ledgerd comment"]},
        {"cmd": ["ledgerd", "comment", "hi"]},
        '{"command": "ledgerd comment hi"}',
        "ledgerd comment hi",
        {"steps": [{"run": "make"}, {"run": "ledgerd comment hi"}]},
        {"description": "Say something", "stdin": "x", "program": "ledgerd comment"},
    ],
)
def test_a_remark_is_found_wherever_the_arguments_hold_it(args: Any) -> None:
    assert command_line({"tool": "exec", "args": args}) is None


@pytest.mark.parametrize(
    ("payload", "line"),
    [
        ({"tool": "bash", "args": {"command": "make test"}}, "make test"),
        ({"tool": "bash", "args": {"command": "make \\\n   test"}}, "make \\ test"),
        ({"tool": "shell", "args": {"cmd": ["bash", "-lc", "make test"]}}, "make test"),
        ({"tool": "shell", "args": {"command": ["make", "test"]}}, "make test"),
        ({"tool": "shell", "args": '{"command": "make test"}'}, "make test"),
        ({"tool": "Read", "args": {"file_path": "src/a.py", "limit": 3}}, "Read: src/a.py"),
        ({"tool": "Grep", "args": {"pattern": "def x", "path": "src"}}, "Grep: src"),
        ({"tool": "note", "args": "free text"}, "note: free text"),
        ({"tool": "list_files", "args": {}}, "list_files"),
        ({"tool": "list_files"}, "list_files"),
        ({"tool": "bash", "args": {"command": ""}}, "bash"),
        ({}, ""),
    ],
)
def test_a_tool_call_is_one_line(payload: dict[str, Any], line: str) -> None:
    assert command_line(payload) == line


def test_a_long_command_is_cut() -> None:
    line = command_line({"tool": "bash", "args": {"command": "x" * 5000}})
    assert line is not None
    assert len(line) == LINE_CHARS_MAX
    assert line.endswith("…")


@pytest.mark.parametrize(
    "hostile",
    [
        "ledgerd " + "-a\\" * 50_000 + " comment_",
        "ledgerd -a " * 50_000 + "comment_",
        "ledgerd" + " " * 500_000 + "comment_",
        "/ledgerd -/" * 50_000 + "comment_",
        "ledgerd" + "\\" * 500_000 + "comment_",
        "ledgerd -a b" + " -a b" * 100_000 + "comment_",
    ],
)
def test_hostile_commands_are_read_in_linear_time(hostile: str) -> None:
    start = time.process_time()
    carries_remark(hostile)
    assert time.process_time() - start < 2


def test_deeply_nested_arguments_are_read() -> None:
    nested: Any = "ledgerd comment"
    for _ in range(5000):
        nested = [nested, {}]
    assert command_line({"tool": "x", "args": nested}) is None


def working() -> Story:
    return Story().started_goal().opened("a", "1")


def test_the_current_command_is_the_newest_remark_or_command() -> None:
    story = working()
    assert story.goal_json()["current_command"] is None
    story.command("a", 1, "make")
    assert story.goal_json()["current_command"] == "make"
    story.comment("a", 2, "it builds")
    assert story.goal_json()["current_command"] == "it builds"
    story.command("a", 3, "make test")
    assert story.goal_json()["current_command"] == "make test"
    assert story.goal_json()["current_since"] == story.task_json("1")["current_since"] == "2023-11-14T22:13:27Z"


def test_within_a_session_the_highest_seq_is_the_newest() -> None:
    story = working().command("a", 9, "make test").command("a", 4, "make")
    assert story.goal_json()["current_command"] == "make test"


def test_across_sessions_the_later_one_is_the_newest() -> None:
    story = working().command("a", 900, "make").task("2", "7").opened("b", "2").command("b", 1, "ls")
    assert story.goal_json()["current_command"] == "ls"
    assert story.task_json("1")["current_command"] == "make"
    assert story.task_json("2")["current_command"] == "ls"


def test_churned_copies_are_no_news() -> None:
    story = working().command("a", 1, "make").comment("a", 2, "it builds").command("a", 3, "make test")
    since = story.goal_json()["current_since"]
    story.opened("again", "1").command("again", 1, "make").comment("again", 2, "it builds")
    assert (story.goal_json()["current_command"], story.goal_json()["current_since"]) == ("make test", since)
    story.command("again", 3, "make test").command("again", 4, "make install")
    assert story.goal_json()["current_command"] == "make install"


def test_a_command_that_carries_a_remark_is_never_the_current_one() -> None:
    story = working().command("a", 1, "make").command("a", 2, "echo hi | ledgerd comment")
    assert story.goal_json()["current_command"] == "make"
