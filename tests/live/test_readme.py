"""What the README shows is what happens: its console blocks are run, in order, against a live server."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def steps(text: str) -> list[tuple[str, str]]:
    """The commands of all console blocks, each with the output that stands below it."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = step.splitlines()
            heredoc = re.search(r"<< '(\w+)'", lines[0])
            end = lines.index(heredoc[1]) + 1 if heredoc else 1
            found.append(("\n".join(lines[:end]), "\n".join(lines[end:])))
    return found


def test_the_readme_shows_what_its_commands_print(server, tmp_path):
    missing = [tool for tool in ("jq", "curl") if shutil.which(tool) is None]
    assert not missing, f"the README's examples use {missing}: install them"
    shown = steps(README.read_text())
    assert len(shown) > 10
    mark = "----- next -----"
    script = "shopt -s expand_aliases\n" + "\n".join(f"{command}\necho '{mark}'" for command, _ in shown)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "URL": server.url, "TOKEN": server.owner_token}
    done = subprocess.run(
        ["bash", "-e"], input=script, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    printed = [part.strip() for part in done.stdout.split(mark)[:-1]]
    assert list(zip([command for command, _ in shown], printed, strict=True)) == shown


def test_the_readme_shows_a_daemon_that_works(server, owner, tmp_path):
    [example] = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    environment = {**os.environ, "LEDGERD_URL": server.url, "LEDGERD_TOKEN": server.owner_token}
    done = subprocess.run(
        [sys.executable, "-c", example], env=environment, cwd=tmp_path, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    drain = [sys.executable, "-m", "ledger.cli", "outbox", "--outbox", "outbox.db", "drain"]
    assert subprocess.run(drain, env=environment, cwd=tmp_path, timeout=60).returncode == 0
    [task] = [task for task in owner.get("/api/tasks?status=done").json()["items"] if task["summary"] == "ported"]
    rows = owner.get(f"/api/tasks/{task['id']}").json()["events"]
    assert [row["kind"] for row in rows] == ["task-started", "comment", "task-done"]
