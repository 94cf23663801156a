"""`ledgerd sweep` as a shell runs it, with a server that hears of it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from ledger.daemons.sweep.config import load
from ledger.daemons.sweep.showing_config import writes
from tests.live.serving import OWNER_TOKEN, Server, event, opened, push, seen, server_environment
from tests.unit.daemons.sweep.gits import ENVIRONMENT, bare, git, repository
from tests.unit.daemons.sweep.worlds import World

WAIT_S_MAX = 30.0
SECRET = "ghp_" + "a1B2" * 9  # of no one: made of parts, so that it stands nowhere whole


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "home")


def started(server: Server, world: World, *words: str) -> subprocess.Popen[str]:
    fields = {"LEDGERD_URL": server.url, "LEDGERD_TOKEN": OWNER_TOKEN, "HOME": str(world.home), **ENVIRONMENT}
    kept = {name: value for name, value in server_environment(fields).items() if not name.startswith("XDG_")}
    return subprocess.Popen(
        [sys.executable, "-m", "ledger.cli", "sweep", "-c", str(world.home / "sweep.toml"), *words],
        env=kept,
        cwd=world.home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def sweep(server: Server, world: World, *words: str) -> subprocess.CompletedProcess[str]:
    process = started(server, world, *words)
    stdout, stderr = process.communicate(timeout=WAIT_S_MAX)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def test_a_whole_run_changes_what_it_says_it_writes_and_nothing_else(
    server: Server, reader: httpx.Client, world: World, tmp_path: Path
) -> None:
    remote = bare(tmp_path / "remote.git")
    repository(world.register)
    git(world.register, "remote", "add", "origin", str(remote))
    world.configure(
        f'[git]\nenabled = true\npush = true\nexpected_remote_url = "{remote}"\n'
        f"[hooks]\nnotify_cmd = \"sh -c 'cat > {tmp_path}/notified'\"\n"
    )
    world.session("one", [f"rm -rf /srv/one && echo token={SECRET}"], said=f"You deleted it! My token is {SECRET}")
    world.clean("two")
    world.session("large", ["ls"], said="You deleted it! " + "All of it. " * 120_000)  # worth a compiled screen
    (world.home / ".ssh").mkdir()
    (world.home / ".ssh" / "id").write_text("private")
    listed = writes(load(world.home / "sweep.toml"))
    before = world.tree()
    done = sweep(server, world, "run")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("2 incidents filed: 2 HIGH\n")
    after = world.tree(lambda name: name.startswith("judge/asked"))
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    for name in changed:
        path = world.home / name
        assert path == world.register or any(path == one or one in path.parents for one in listed), name
    assert (tmp_path / "notified").read_text() == done.stdout
    assert git(remote, "log", "--format=%s").splitlines() == ["2 incidents filed: 2 HIGH", "first"]
    assert "register/incidents.md" in changed
    for name, (_, content) in world.tree(lambda name: name.startswith("projects")).items():
        assert SECRET.encode() not in content, name
    [task] = [one for one in seen(reader, "/api/tasks", limit=200)["items"] if one["id"].startswith("sweep-")]
    assert (task["status"], task["summary"]) == ("done", "2 incidents filed: 2 HIGH")
    [session] = seen(reader, f"/api/tasks/{task['id']}")["sessions"]
    told = seen(reader, f"/api/sessions/{session['session_id']}/events", limit=1000)["events"]
    assert session["agent"] == "ledgerd-sweep"
    assert [one["kind"] for one in told if one["seq"] >= 0] == [
        "sweep.started",
        "session.clean",
        "source.initialised",
        "candidates.found",
        "judge.verdict",
        "incident.filed",
        "incident.filed",
        "register.written",
        "session.judged",
        "sweep.finished",
        "result",
    ]
    assert SECRET not in json.dumps(told)


def test_what_a_service_holds_is_swept_and_the_sweep_itself_left_out(
    server: Server, saddle: httpx.Client, world: World
) -> None:
    session_id, task_id = opened(saddle, agent="ledgerd-loop")
    opened(saddle, agent="ledgerd-sweep", task_id=task_id)  # who pushes may say so, and hides nothing by it
    call = {"tool": "Bash", "args": {"command": "rm -rf /srv/data"}, "call_id": "c"}
    push(saddle, session_id, [event(0, "tool_call", call), event(1, "tool_result", {"call_id": "c", "exit_code": 0})])
    config = world.home / "sweep.toml"
    config.write_text(config.read_text().replace('type = "claude-code"\npath = "projects"', 'type = "ledger"'))
    done = sweep(server, world, "run", "--json")
    assert done.returncode == 0, done.stderr
    assert [one["title"] for one in json.loads(done.stdout)["filed"]] == [f"Damage in {session_id}"]
    done = sweep(server, world, "run", "--json")
    assert json.loads(done.stdout)["status"] == "quiet"
    assert not [prompt for prompt in world.asked if "ledgerd-sweep" in prompt]


def test_a_run_that_is_asked_to_end_ends_its_judge_and_the_next_goes_on(server: Server, world: World) -> None:
    world.damage("one")
    world.judge_does("hang")
    process = started(server, world, "run")
    ends = time.monotonic() + WAIT_S_MAX
    while not world.asked and time.monotonic() < ends:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=WAIT_S_MAX)
    assert (process.returncode, stderr.splitlines()[0]) == (
        1,
        f"asked to end while {Path(sys.executable).name} ran",
    )
    left = [path for path in Path("/proc").glob("[0-9]*/cmdline") if _mentions(path, str(world.judge))]
    assert left == []
    assert not world.state().sweeps.unended()
    world.judge_does("file")
    assert world.run().headline == "1 incident filed: 1 HIGH"


def _mentions(path: Path, words: str) -> bool:
    try:
        return words.encode() in path.read_bytes()
    except OSError:
        return False
