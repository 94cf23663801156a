"""`ledgerd hook install` and `uninstall`: an agent's settings, with our hooks and everything else as it was."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ledger.cli import main
from ledger.hooks.installing import TARGETS, installed, settings_path, uninstalled
from ledger.hooks.receiving import AGENTS

THEIRS: dict[str, Any] = {
    "zeta": ["ä", 1.5],
    "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "guard.sh"}]}],
        "Custom": "left alone",
    },
    "alpha": {"model": "opus"},
}
OURS = ["/opt/led ger/bin/ledgerd"]
Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)

    def run(*words: str) -> Result:
        return CliRunner().invoke(main, ["hook", *words])

    return run


def commands(settings: dict[str, Any], event: str) -> list[str]:
    return [one["command"] for group in settings["hooks"][event] for one in group["hooks"]]


@pytest.mark.parametrize("agent", AGENTS)
def test_every_event_that_is_known_gets_a_hook(agent: str) -> None:
    settings = json.loads(installed("", agent, ["/bin/ledgerd"], Path("settings.json")))
    assert list(settings) == ["hooks"]
    assert list(settings["hooks"]) == list(TARGETS[agent].events)
    for event in TARGETS[agent].events:
        assert commands(settings, event) == [f"/bin/ledgerd hook {agent}"]


def test_timeouts_are_in_the_units_of_the_agent() -> None:
    def timeout(agent: str, event: str) -> int:
        settings = json.loads(installed("", agent, ["ledgerd"], Path("s")))
        return int(settings["hooks"][event][0]["hooks"][0]["timeout"])

    assert timeout("claude-code", "Stop") == timeout("codex", "Stop") == 10
    assert timeout("gemini", "AfterAgent") == 10_000


def test_what_is_there_stays_in_its_place() -> None:
    before = json.dumps(THEIRS, indent=4, ensure_ascii=False)
    after = installed(before, "claude-code", OURS, Path("s"))
    settings = json.loads(after)
    assert list(settings) == ["zeta", "hooks", "alpha"]
    assert list(settings["hooks"])[:2] == ["PreToolUse", "Custom"]
    assert commands(settings, "PreToolUse") == ["guard.sh", "'/opt/led ger/bin/ledgerd' hook claude-code"]
    assert '\n    "zeta"' in after
    assert "ä" in after


def test_installing_again_changes_nothing_and_a_moved_ledgerd_is_followed() -> None:
    once = installed(json.dumps(THEIRS), "claude-code", OURS, Path("s"))
    assert installed(once, "claude-code", OURS, Path("s")) == once
    moved = json.loads(installed(once, "claude-code", ["/bin/ledgerd"], Path("s")))
    assert commands(moved, "Stop") == ["/bin/ledgerd hook claude-code"]


@pytest.mark.parametrize("before", [THEIRS, {"model": "x"}, {"hooks": {}}, {"hooks": {"Stop": []}}])
def test_uninstalling_gives_back_what_was_there(before: dict[str, Any]) -> None:
    text = json.dumps(before, indent=2) + "\n"
    after = uninstalled(installed(text, "claude-code", OURS, Path("s")), "claude-code", Path("s"))
    kept = {name: value for name, value in before.items() if name != "hooks" or any(value.values())}
    assert json.loads(after) == kept


def test_uninstalling_what_is_not_there_changes_nothing() -> None:
    text = json.dumps(THEIRS)
    assert uninstalled(text, "claude-code", Path("s")) == text


def test_the_module_is_known_as_ours_too() -> None:
    words = ["/usr/bin/python3", "-P", "-m", "ledger.cli"]
    assert uninstalled(installed("{}", "codex", words, Path("s")), "codex", Path("s")).strip() == "{}"


def test_the_settings_are_where_the_agent_looks_for_them() -> None:
    assert settings_path("claude-code", {"HOME": "/h"}) == Path("/h/.claude/settings.json")
    assert settings_path("claude-code", {"HOME": "/h", "CLAUDE_CONFIG_DIR": "/c"}) == Path("/c/settings.json")
    assert settings_path("codex", {"HOME": "/h", "CODEX_HOME": "/x"}) == Path("/x/hooks.json")
    assert settings_path("gemini", {"HOME": "/h"}) == Path("/h/.gemini/settings.json")


def test_a_dry_run_shows_the_difference_and_writes_nothing(run: Run, tmp_path: Path) -> None:
    result = run("install", "claude-code", "--dry-run")
    assert result.exit_code == 0
    assert '+    "SessionStart": [' in result.output
    assert not (tmp_path / ".claude").exists()


def test_the_file_keeps_its_mode_and_a_link_stays_one(run: Run, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text(json.dumps(THEIRS))
    real.chmod(0o640)
    link = tmp_path / "settings.json"
    link.symlink_to(real)
    assert run("install", "claude-code", "--settings", str(link)).exit_code == 0
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert "SessionEnd" in real.read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dotfiles.json", "settings.json"]


def test_installed_and_uninstalled_again_nothing_is_left(run: Run, tmp_path: Path) -> None:
    assert "/hooks" in run("install", "codex").output
    assert "nothing to change" in run("install", "codex").output
    assert run("uninstall", "codex").exit_code == 0
    assert json.loads((tmp_path / ".codex" / "hooks.json").read_text()) == {}


@pytest.mark.parametrize(
    "text", ["{", "[]", "// a comment\n{}", '{"hooks": []}', '{"hooks": {"Stop": [{"hooks": 1}]}}']
)
def test_what_cannot_be_edited_safely_is_refused_and_left_as_it_is(run: Run, tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)
    for verb in ("install", "uninstall"):
        result = run(verb, "claude-code", "--settings", str(path))
        assert result.exit_code == 1
        assert "settings.json" in result.stderr
        assert "Nothing was changed" in result.stderr
    assert path.read_text() == text
