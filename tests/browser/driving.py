"""A real server and a real browser, each in its own process and ended with the test."""

from __future__ import annotations

import os
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Browser, sync_playwright

OWNER_TOKEN = "ld_owner_of-the-browser-tests"
START_S_MAX = 90
WAIT_MS = 60_000
CHROMIUM_SWITCHES = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class Ledger:
    """A running server, and what its owner and its saddles say to it."""

    def __init__(self, url: str, token: str = OWNER_TOKEN) -> None:
        self.url = url
        self._http = httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=20, trust_env=False
        )
        self._saddles: list[Ledger] = []

    def close(self) -> None:
        for ledger in (*self._saddles, self):
            ledger._http.close()

    def saddle(self, name: str) -> Ledger:
        """The same server as a saddle of this name speaks to it, on a host of the same name."""
        token = self.post("/api/tokens", {"role": "saddle", "name": name})["token"]
        self._saddles.append(Ledger(self.url, token))
        self._saddles[-1].post("/api/saddle/heartbeat", {"host": name, "version": "0.9"})
        return self._saddles[-1]

    def get(self, path: str) -> Any:
        return self._http.get(path).raise_for_status().json()

    def post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = self._http.post(path, json=body or {}).raise_for_status()
        return answer.json() if answer.content else None

    def goal(self, title: str, **more: Any) -> str:
        return str(self.post("/api/goals", {"title": title, **more})["id"])

    def started_goal(self, title: str, session_id: str, by: Ledger | None = None, **more: Any) -> tuple[str, str]:
        """The ids of a goal that was started and of its run, on which a session works, `by` a saddle or the owner."""
        goal_id = self.goal(title, **more)
        self.post(f"/api/goals/{goal_id}/start")
        run = self.get(f"/api/goals/{goal_id}")["run_task_id"]
        (by or self).open(session_id, run, agent="claude-code")
        return goal_id, run

    def open(self, session_id: str, task_id: str, **more: Any) -> None:
        self.post("/api/saddle/sessions", {"session_id": session_id, "task_id": task_id, **more})

    def push(self, session_id: str, *events: tuple[int, str, Any]) -> Any:
        rows = [{"seq": seq, "kind": kind, "actor": "model", "payload": payload} for seq, kind, payload in events]
        return self.post("/api/saddle/chunks", {"session_id": session_id, "events": rows})

    def result(self, session_id: str, state: str, summary: str = "", seq: int | None = None) -> None:
        self.post("/api/saddle/results", {"session_id": session_id, "state": state, "summary": summary, "seq": seq})


@contextmanager
def serving(folder: Path, port: int = 0) -> Iterator[Ledger]:
    """A server on the store in `folder`, on a free port if none is given; stopped at the end."""
    environment = {**os.environ, "LEDGERD_OWNER_TOKEN": OWNER_TOKEN}
    command = [sys.executable, "-m", "ledger.cli", "serve", "--port", str(port)]
    command += ["--store", f"sqlite:///{folder / 'ledger.db'}"]
    log = folder / "server.log"
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            ledger = Ledger(_address(process, log))
            try:
                yield ledger
            finally:
                ledger.close()
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def _address(process: subprocess.Popen[str], log: Path) -> str:
    """The address that the server's first line names."""
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    stdout = process.stdout
    assert stdout is not None
    threading.Thread(target=lambda: lines.put(stdout.readline()), daemon=True).start()
    try:
        line = lines.get(timeout=START_S_MAX)
    except queue.Empty:
        line = ""
    marker = "ledgerd listening on "
    assert line.startswith(marker), f"the server did not start; it said {line!r} and\n{log.read_text()}"
    return line.removeprefix(marker).strip()


@contextmanager
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert path, "the browser tests need Chromium: apt-get install chromium (or make test, which does it)"
    switches = [*CHROMIUM_SWITCHES, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, headless=True, args=switches)
        try:
            yield browser
        finally:
            browser.close()
