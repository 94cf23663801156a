from __future__ import annotations

import contextlib
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.live.serving import OWNER_TOKEN, Server, fresh, running, server_environment
from tests.unit.transcripts.opencode_written import START_MS, Records, conversation, into_database
from tests.unit.transcripts.written import as_lines, assistant, text, user, write

WAIT_S_MAX = 60.0

Watch = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def environment(server: Server, home: Path, **more: str) -> dict[str, str]:
    fields = {"LEDGERD_URL": server.url, "LEDGERD_TOKEN": OWNER_TOKEN, "HOME": str(home), **more}
    kept = {name: value for name, value in server_environment(fields).items() if not name.startswith("XDG_")}
    return {name: value for name, value in kept.items() if name not in ("CODEX_HOME", "CLAUDE_CONFIG_DIR")}


def watch_command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "ledger.cli", "watch", *map(str, arguments)]


@pytest.fixture
def watch(server: Server, home: Path) -> Watch:
    def run(*arguments: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            watch_command(*arguments),
            env=environment(server, home, **more),
            cwd=home,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )

    return run


def session_texts(owner: httpx.Client, session_id: str) -> list[str]:
    events = owner.get(f"/api/sessions/{session_id}/events").raise_for_status().json()["events"]
    return [event["payload"]["text"] for event in events if event["kind"] == "message"]


def test_a_pass_over_the_agents_folders_brings_all_and_a_second_one_nothing(
    watch: Watch, home: Path, owner: httpx.Client
) -> None:
    claude, opencode = fresh("claude"), fresh("ses")
    secret = "ghp_" + "a1B2" * 9
    write(home / ".claude/projects/p/t.jsonl", user(f"Fix {secret}", sessionId=claude), assistant(text("ok")))
    database = conversation(Records(opencode))
    into_database(home / ".local/share/opencode/opencode.db", database)
    first = watch("--once")
    assert first.returncode == 0, first.stderr
    assert "2 files, 2 sessions" in first.stdout
    assert session_texts(owner, claude) == ["Fix [REDACTED]", "ok"]
    task = owner.get(f"/api/tasks/oc-{opencode}").raise_for_status().json()
    assert (task["usage"]["input_tokens"], task["usage"]["cost_usd"]) == (100, 0.5)
    second = watch("--once")
    assert "0 events stored, " in second.stdout


def test_a_wrong_token_is_named_also_where_there_is_nothing_to_bring(watch: Watch) -> None:
    done = watch("--once", LEDGERD_TOKEN="nope")
    assert done.returncode == 1
    assert "LEDGERD_TOKEN" in done.stderr


def test_only_what_was_asked_for_is_read(watch: Watch, home: Path, owner: httpx.Client) -> None:
    claude = fresh("claude")
    path = write(home / "elsewhere/t.jsonl", user("go", sessionId=claude))
    assert "0 files" in watch("--once", "--from", path.parent, "--only", "codex").stdout
    assert "1 file, 1 session" in watch("--once", "--from", path.parent, "--only", "claude-code").stdout
    assert owner.get(f"/api/sessions/{claude}").json()["agent"] == "claude-code"


def test_a_bad_line_is_named_and_a_wrong_setting_too(watch: Watch, home: Path) -> None:
    path = write(home / "t.jsonl", user("go", sessionId=fresh("claude")))
    with path.open("ab") as file:
        file.write(b"{half\n")
    outcome = watch("--once", "--from", path)
    assert outcome.returncode == 0
    assert f"bad line: {path}:2: no JSON object" in outcome.stderr
    token = watch("--once", "--from", path, LEDGERD_TOKEN="wrong")
    assert (token.returncode, "LEDGERD_TOKEN" in token.stderr) == (1, True)
    url = watch("--once", "--from", path, LEDGERD_URL="ftp://nowhere")
    assert (url.returncode, "LEDGERD_URL" in url.stderr) == (1, True)


class Watching:
    """A `ledgerd watch` that runs; what it printed can be waited for."""

    def __init__(self, server: Server, home: Path) -> None:
        self._process = subprocess.Popen(
            watch_command(),
            env=environment(server, home, PYTHONUNBUFFERED="1"),
            cwd=home,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, words: str) -> None:
        while True:
            line = self._lines.get(timeout=WAIT_S_MAX)
            if words in line:
                return

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        self._process.send_signal(how)
        try:
            return self._process.wait(WAIT_S_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise
        finally:
            self._reader.join(WAIT_S_MAX)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with contextlib.closing(self._process.stdout):
            for line in self._process.stdout:
                self._lines.put(line.decode())


@contextlib.contextmanager
def watching(server: Server, home: Path) -> Iterator[Watching]:
    watching = Watching(server, home)
    try:
        watching.wait_for("following")
        yield watching
    except BaseException:
        with contextlib.suppress(Exception):
            watching.stop(signal.SIGKILL)
        raise


def wait_until(server: Server, stored: int) -> list[Any]:
    """The log, once it holds that many events of sessions, openings aside; the server tells when it has moved."""
    from ledger.client.api import Api
    from ledger.client.live import cursors

    with Api(server.url, OWNER_TOKEN) as api, contextlib.closing(cursors(api)) as moves:
        deadline = threading.Timer(WAIT_S_MAX, server.interrupt)
        deadline.start()
        try:
            for _ in moves:
                log = api.events(limit=1000)["events"]
                events = [one for one in log if one["seq"] >= 0 and not one["session_id"].startswith("@")]
                if len(events) >= stored:
                    return events
        finally:
            deadline.cancel()
    raise AssertionError("the feed ended")


def test_what_is_added_while_it_runs_arrives_and_a_restart_stores_nothing_twice(tmp_path: Path, home: Path) -> None:
    path = write(home / ".claude/projects/p/t.jsonl", user("one"))
    database = home / ".local/share/opencode/opencode.db"
    records = Records()
    into_database(database, records)
    with running(tmp_path) as server:
        with watching(server, home) as first:
            wait_until(server, 2)
            line = as_lines(user("two"))
            with path.open("ab", buffering=0) as file:
                file.write(line[:40])
                file.write(line[40:])
            wait_until(server, 4)
            asked = records.message("user", 10)
            records.part(asked, 11, "text", text="three", time={"start": START_MS})
            into_database(database, records, updated=1)
            events = wait_until(server, 6)
            assert first.stop(signal.SIGKILL) != 0
        with path.open("ab") as file:
            file.write(as_lines(user("four")))
        with watching(server, home) as second:
            events = wait_until(server, 8)
            assert second.stop() == 0
        assert len({(one["session_id"], one["seq"]) for one in events}) == len(events) == 8
        assert [one["payload"]["text"] for one in events if one["kind"] == "message"] == [
            "one",
            "two",
            "three",
            "four",
        ]
