"""`ledgerd bundle` on the command line, without a server."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from ledger.cli import main


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "no-such-scenario"], "no scenario and no file 'no-such-scenario'"),
        (["run", "--store", "sqlite:////tmp/one.db"], "put {run} into the URL"),
        (["run", "replay", "--store", "sqlite:///{nothing}"], "only {folder} and {run}"),
    ],
)
def test_wrong_usage_exits_with_2_and_says_what_is_wrong(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(main, ["bundle", *arguments])
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_file_that_is_no_bundle_exits_with_1(tmp_path: Path) -> None:
    file = tmp_path / "goal.json"
    file.write_text("{}")
    result = CliRunner().invoke(main, ["bundle", "run", str(file)])
    assert result.exit_code == 1
    assert "no bundle" in result.stderr


def test_recording_from_a_server_that_is_not_there_exits_with_1_and_says_what_to_do() -> None:
    nobody = {"LEDGERD_URL": "http://127.0.0.1:1", "LEDGERD_TOKEN": "token"}
    result = CliRunner().invoke(main, ["bundle", "record", "7"], env=nobody)
    assert result.exit_code == 1
    assert "LEDGERD_URL" in result.stderr


@pytest.mark.parametrize("arguments", [[], ["run"], ["record"]])
def test_help_shows_an_example(arguments: list[str]) -> None:
    result = CliRunner().invoke(main, ["bundle", *arguments, "--help"])
    assert result.exit_code == 0
    assert "Example:" in result.stdout
