"""The hook as an agent runs it: a process that says nothing, fails at nothing and is soon gone."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger.hooks import spool, telling, troubles
from ledger.hooks.carrying import Tray
from ledger.hooks.receiving import AGENTS
from tests.unit.hooks.hooked import bash

ROOT = Path(__file__).parents[3]
ENTRY = [sys.executable, "-c", "from ledger.entry import main; main()"]


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[str]:
    """An outbox with a carrier's place that is taken, so that no hook starts one."""
    path = str(tmp_path / "outbox.db")
    with open(spool.carrier_path(path), "w") as place:
        fcntl.flock(place, fcntl.LOCK_EX)
        yield path


def hook(outbox: str, *words: str, body: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LEDGERD_")}
    env = {**kept, "LEDGERD_OUTBOX": outbox, "PYTHONPATH": str(ROOT), **environment}
    folder = next(path for path in Path(outbox).parents if path.is_dir())
    return subprocess.run([*ENTRY, "hook", *words], input=body, env=env, cwd=folder, capture_output=True, timeout=30)


def is_silent(done: subprocess.CompletedProcess[Any]) -> bool:
    return (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_what_the_agent_gives_lies_in_the_spool_as_it_came(outbox: str) -> None:
    body = json.dumps(bash("PreToolUse")).encode()
    assert is_silent(hook(outbox, "claude-code", body=body, LEDGERD_SESSION="s1"))
    [record] = Tray(outbox).records()
    assert (record.agent, record.within, record.body.strip()) == ("claude-code", "s1", body)


def test_codex_may_notify_with_an_argument(outbox: str) -> None:
    assert is_silent(hook(outbox, "codex", '{"type": "agent-turn-complete"}'))
    [record] = Tray(outbox).records()
    assert record.body.strip() == b'{"type": "agent-turn-complete"}'


def test_no_input_is_nothing_to_tell(outbox: str) -> None:
    assert is_silent(hook(outbox, "gemini"))
    assert list(Tray(outbox).records()) == []
    assert troubles.read(outbox) == []


def test_an_input_that_is_too_large_is_noted(outbox: str) -> None:
    assert is_silent(hook(outbox, "claude-code", body=b"x" * (spool.RECORD_BYTES_MAX + 1)))
    [line] = troubles.read(outbox)
    assert "claude-code: the input has more than" in line


def test_where_nothing_can_be_written_the_agent_does_not_notice(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    assert is_silent(hook(str(tmp_path / "file" / "outbox.db"), "claude-code", body=b"{}", HOME="/dev/null"))


def test_settings_that_are_broken_do_not_matter(outbox: str) -> None:
    Path(outbox).with_name("ledgerd.toml").write_text("prot = [")
    assert is_silent(hook(outbox, "claude-code", body=b"{}"))
    assert len(list(Tray(outbox).records())) == 1


def test_a_hook_loads_nothing_but_the_interpreter_s_own() -> None:
    code = (
        "import sys; before = set(sys.modules); import ledger.entry, ledger.hooks.receiving;"
        "print(*sorted(name for name in set(sys.modules) - before if not name.startswith('ledger')))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"__future__", "fcntl"}


def test_help_is_for_people(outbox: str) -> None:
    done = hook(outbox, "claude-code", "--help")
    assert done.returncode == 0
    assert b"Example" in done.stdout


def test_every_agent_that_is_received_can_be_told() -> None:
    assert set(AGENTS) == set(telling.AGENTS)
