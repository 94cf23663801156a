from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import Result

from ledger import __version__
from ledger.cli import COMMANDS, main

Run = Callable[..., Result]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_subcommand_has_help_with_an_example(run: Run, name: str) -> None:
    command = main.get_command(click.Context(main), name)
    below = command.commands if isinstance(command, click.Group) else ()
    for words in [(name,), *((name, sub) for sub in below)]:
        result = run(*words, "--help")
        assert result.exit_code == 0
        assert f"ledgerd {name}" in result.output.partition("Example")[2], words


def test_help_lists_every_command(run: Run) -> None:
    listed = run("--help").output
    assert all(f"\n  {name} " in listed for name in COMMANDS)


def test_starting_loads_no_command_and_nothing_costly() -> None:
    code = (
        "import sys, ledger.cli; costly = {'rich', 'httpx', 'starlette', 'uvicorn', 'aiosqlite', 'jinja2'};"
        "print(sorted(costly & sys.modules.keys()))"
    )
    top = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", code], cwd=top, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_it_runs_as_a_module_too() -> None:
    top = Path(__file__).parents[3]
    words = [sys.executable, "-m", "ledger.cli", "--version"]
    assert subprocess.run(words, cwd=top, capture_output=True, text=True).stdout == f"ledgerd {__version__}\n"


@pytest.mark.parametrize("words", [["no-such-command"], ["goal"], ["goals", "--limit", "0"], ["--config", "no.toml"]])
def test_wrong_usage_exits_with_2(run: Run, words: list[str]) -> None:
    assert run(*words).exit_code == 2


def test_an_error_says_what_happened_and_what_to_do_on_standard_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "ledgerd.toml").write_text("prot = 8137\n")
    result = run("goals")
    assert result.exit_code == 1
    assert result.stdout == ""
    error, hint = result.stderr.splitlines()
    assert error.startswith("error: ledgerd.toml: ")
    assert "prot" in error
    assert hint.startswith("hint: ")
    assert "port" in hint


def test_a_server_that_is_not_there_is_named(run: Run) -> None:
    result = run("token", "revoke", "3", env={"LEDGERD_URL": "ftp://nowhere"})
    assert result.exit_code == 1
    assert "LEDGERD_URL" in result.stderr
