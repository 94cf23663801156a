from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from ledger.hooks import troubles

Run = Callable[..., Result]


def path_shown(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return str(json.loads(result.stdout)["path"])


def test_the_outbox_is_named_by_a_flag_a_variable_or_the_settings_file_in_this_order(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert path_shown(run("outbox", "status", "--json")) == str(tmp_path / "state" / "ledgerd" / "outbox.db")
    (tmp_path / "ledgerd.toml").write_text('outbox = "of-file.db"\n')
    assert path_shown(run("outbox", "status", "--json")) == str(tmp_path / "of-file.db")
    monkeypatch.setenv("LEDGERD_OUTBOX", "of-variable.db")
    assert path_shown(run("outbox", "status", "--json")) == str(tmp_path / "of-variable.db")
    assert path_shown(run("outbox", "--outbox", "of-flag.db", "status", "--json")) == str(tmp_path / "of-flag.db")


def test_what_is_emitted_goes_to_the_outbox_of_the_settings_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "ledgerd.toml").write_text('outbox = "of-file.db"\n')
    pushed = run("push", "--title", "T", "--wait", "0", input='{"kind": "comment", "payload": {"body": "Hello."}}\n')
    assert pushed.exit_code == 0, pushed.output
    assert json.loads(run("outbox", "status", "--json").stdout)["waiting"] == 1
    assert not (tmp_path / "state").exists()


def test_a_home_folder_in_its_name_is_the_same_for_all_who_use_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LEDGERD_OUTBOX", "~/mine.db")
    assert path_shown(run("outbox", "status", "--json")) == str(tmp_path / "mine.db")


def test_what_went_wrong_in_hooks_is_told(run: Run, tmp_path: Path) -> None:
    outbox = str(tmp_path / "outbox.db")
    assert "trouble" not in run("outbox", "--outbox", outbox).stdout
    for why in ("codex: one", "gemini: two \x1b[2J"):
        troubles.note(outbox, why)
    shown = run("outbox", "--outbox", outbox).stdout
    assert "2 troubles in hooks, the last one: " in shown
    assert "gemini: two\n" in shown
    assert troubles.path_of(outbox) in shown
    listed = json.loads(run("outbox", "--outbox", outbox, "status", "--json").stdout)["hook_troubles"]
    assert [line.split()[1] for line in listed] == ["codex:", "gemini:"]
