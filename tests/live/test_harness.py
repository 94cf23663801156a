"""What the harness promises when somebody dies or signals at the worst moment, over a live server."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ledger.cli.worker import _Worker
from ledger.client import Saddle
from ledger.client.api import Api
from ledger.client.saddle import Session
from ledger.errors import StorageFull
from tests.live.serving import Server, created, seen
from tests.live.shell import Shell
from tests.unit.daemons.agents import is_running, number_in, wait_for


@pytest.fixture
def shell(server: Server, tmp_path: Path) -> Shell:
    return Shell(tmp_path, server.url)


@pytest.fixture
def task_id(owner: httpx.Client) -> str:
    return str(created(owner, "tasks")["id"])


def test_nothing_of_a_run_lives_on_when_it_is_killed(shell: Shell, task_id: str) -> None:
    script = "setsid sleep 60 & echo $! > child; echo $$ > pid; while :; do sleep 60; done"
    process = shell.start("run", "--task", task_id, "--", "sh", "-c", script)
    pids = [number_in(shell.folder / name) for name in ("pid", "child")]
    process.kill()
    process.communicate()
    wait_for(lambda: not any(map(is_running, pids)))


def test_what_left_the_group_of_a_run_is_ended_with_it(shell: Shell, task_id: str) -> None:
    script = "setsid sleep 60 & echo $! > child"
    assert shell.ledgerd("run", "--task", task_id, "--", "sh", "-c", script).returncode == 0
    assert not is_running(number_in(shell.folder / "child"))


# A worker, in this process: so that the signal comes at the very moment


@pytest.fixture
def worker(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Worker]:
    """One whose command says that it was run; signals are handled as before when the test is over."""
    monkeypatch.chdir(tmp_path)
    numbers = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    token = server.token("saddle", f"worker of {tmp_path.name}")
    try:
        with Saddle(server.url, token, outbox=tmp_path / "outbox.db") as saddle:
            yield _Worker(saddle, "touch run", None, None)
            assert saddle.flush(10)
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def terminated_after(real: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **more: Any) -> Any:
        result = real(*arguments, **more)
        os.kill(os.getpid(), signal.SIGTERM)
        return result

    return call


@pytest.fixture
def queued(owner: httpx.Client) -> str:
    """The only task that is queued."""
    for task in seen(owner, "/api/tasks", status="queued")["items"]:
        owner.post(f"/api/tasks/{task['id']}/cancel")
    return str(created(owner, "tasks")["id"])


def status_of(reader: httpx.Client, task_id: str) -> tuple[str, str]:
    task = seen(reader, f"/api/tasks/{task_id}")
    return task["status"], task["summary"] or ""


def assert_given_up(reader: httpx.Client, queued: str, folder: Path) -> None:
    wait_for(lambda: status_of(reader, queued)[0] != "working")
    status, summary = status_of(reader, queued)
    assert (status, summary) == ("cancelled", "touch run was stopped by SIGTERM")
    assert not (folder / "run").exists()


def test_a_signal_between_the_claim_and_the_run_ends_the_task(
    worker: _Worker, queued: str, reader: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox = worker._saddle.outbox
    monkeypatch.setattr(outbox, "adopt", terminated_after(outbox.adopt))
    worker.work(once=False)
    assert_given_up(reader, queued, tmp_path)


def test_a_signal_while_the_answer_to_an_ask_comes_in_ends_the_task(
    worker: _Worker, queued: str, reader: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, interrupted = Api.ask, iter([terminated_after(Api.ask)])
    monkeypatch.setattr(Api, "ask", lambda *args, **more: next(interrupted, real)(*args, **more))
    worker.work(once=False)
    assert_given_up(reader, queued, tmp_path)


def test_a_result_that_cannot_be_kept_at_first_is_told_later_and_the_worker_goes_on(
    worker: _Worker, queued: str, reader: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [StorageFull("no room")] * 2
    real = terminated_after(Session.result)

    def result(*arguments: Any, **more: Any) -> Any:
        if failures:
            raise failures.pop()
        return real(*arguments, **more)

    monkeypatch.setattr(Session, "result", result)
    worker.work(once=False)
    assert not failures
    assert (tmp_path / "run").exists()
    wait_for(lambda: status_of(reader, queued)[0] == "done")
