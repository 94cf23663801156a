from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ledger.daemons.sweep.config import HookKeys
from ledger.daemons.sweep.hooks import Told, run_hooks


@pytest.fixture
def noting(tmp_path: Path) -> HookKeys:
    """Hooks that note their name, what the environment tells and what stands on standard input."""
    script = tmp_path / "note.py"
    script.write_text(
        "import json, os, sys\n"
        "told = {k: v for k, v in os.environ.items() if k.startswith('LEDGERD_')}\n"
        f"with open({str(tmp_path / 'noted')!r}, 'a') as file:\n"
        "    file.write(json.dumps([sys.argv[1:], told, sys.stdin.read()]) + '\\n')\n"
    )
    commands = {name: f"{sys.executable} -I -S {script} {name} 'two words; $(x)'" for name in HOOKS}
    return HookKeys(**commands)


HOOKS = ("notify_cmd", "on_success_cmd", "on_failure_cmd")


def noted(folder: Path) -> list[list[object]]:
    path = folder / "noted"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.parametrize(
    ("status", "filed", "due"),
    [
        ("ok", 2, ["notify_cmd", "on_success_cmd"]),
        ("ok", 0, ["on_success_cmd"]),
        ("quiet", 0, ["on_success_cmd"]),
        ("failed", 0, ["on_failure_cmd"]),
        ("failed", 1, ["notify_cmd", "on_failure_cmd"]),
    ],
)
def test_the_end_of_a_run_says_which_hooks_are_due(
    tmp_path: Path, noting: HookKeys, monkeypatch: pytest.MonkeyPatch, status: str, filed: int, due: list[str]
) -> None:
    monkeypatch.setenv("LEDGERD_TOKEN", "a-token")
    monkeypatch.setenv("LEDGERD_OWNER_TOKEN", "a-token")
    told = Told(status, "the headline", "the summary\n", filed, 1, 0, 1, 3, "/a/report.md")
    said: list[str] = []
    run_hooks(noting, told, tmp_path, str, said.append)
    assert said == []
    assert [row[0] for row in noted(tmp_path)] == [[name, "two words; $(x)"] for name in due]
    for _, environment, stdin in noted(tmp_path):
        assert stdin == "the summary\n"
        assert isinstance(environment, dict)
        assert not {"LEDGERD_TOKEN", "LEDGERD_OWNER_TOKEN"} & environment.keys()
        assert {name: value for name, value in environment.items() if name.startswith("LEDGERD_SWEEP_")} == {
            "LEDGERD_SWEEP_STATUS": status,
            "LEDGERD_SWEEP_HEADLINE": "the headline",
            "LEDGERD_SWEEP_FILED": str(filed),
            "LEDGERD_SWEEP_HIGH": "1",
            "LEDGERD_SWEEP_MEDIUM": "0",
            "LEDGERD_SWEEP_LOW": "1",
            "LEDGERD_SWEEP_EXCLUDED": "3",
            "LEDGERD_SWEEP_REPORT": "/a/report.md",
        }


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("sh -c 'echo password=hunter2hunter2 >&2; exit 7'", "ended with exit code 7: password=[REDACTED]"),
        ("/nowhere/hook", "could not be started: "),
        ("sh -c 'exec sleep 60'", "took longer than 0.2 s"),
    ],
)
def test_a_hook_that_fails_is_said_and_ignored(tmp_path: Path, command: str, said: str) -> None:
    from ledger.client.redaction import redact

    lines: list[str] = []
    run_hooks(
        HookKeys(on_success_cmd=command, timeout=0.2 if "sleep" in command else 20),
        Told("ok", "", ""),
        tmp_path,
        redact,
        lines.append,
    )
    [line] = lines
    assert line.startswith(f"hooks.on_success_cmd {said}")
    assert line.endswith("; ignored")
