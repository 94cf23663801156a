"""Daemons that embed the client: what they emit is durable, waits while the server is away, and is stored once."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import SystemRandom
from typing import Any

import httpx
import pytest

import bundles.outbox
from bundles.runner import discover, run
from ledger.client import AsyncSaddle, Saddle
from ledger.client.api import ApiError
from ledger.client.outbox import BYTES_MAX, Backlog
from tests.live.serving import (
    OWNER_TOKEN,
    ROOT,
    Server,
    created,
    events_of,
    fresh,
    running,
    seen,
    server_environment,
)

AWAY = "http://127.0.0.1:9"
FLUSH_S = 20.0


@pytest.fixture
def saddle_of(server: Server, tmp_path: Path) -> Iterator[Saddle]:
    with Saddle(server.url, OWNER_TOKEN, outbox=tmp_path / "outbox.db") as saddle:
        yield saddle


def emitting(outbox: Path, session_id: str, count: int) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "tests.live.emitting", str(outbox), session_id, str(count)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, cwd=ROOT, env=server_environment({}))


def standing(outbox: Path) -> Any:
    backlog = Backlog(outbox, bytes_max=BYTES_MAX)
    try:
        return backlog.standing()
    finally:
        backlog.close()


def test_what_a_daemon_emits_is_on_the_server_once_and_in_order(saddle_of: Saddle, reader: httpx.Client) -> None:
    session = saddle_of.open_session(task={"title": "Fix the parser"}, agent="an-agent", host="here")
    assert [session.emit("note", {"n": n}) for n in range(50)] == list(range(50))
    session.comment("All pass.")
    session.usage(message_id="m", model="large", input_tokens=5, output_tokens=7, cost_usd=0.5)
    assert session.result("waiting", "May I?") is True
    assert session.result("done", "It is fixed.") is True
    assert session.result("failed", "No.") is False
    assert saddle_of.flush(FLUSH_S)
    assert [event["seq"] for event in events_of(reader, session.id)][:-1] == list(range(53))
    told = seen(reader, f"/api/sessions/{session.id}")
    assert (told["state"], told["agent"], told["usage"]["cost_usd"]) == ("done", "an-agent", 0.5)
    assert (told["missing"], told["conflicts"]) == ([], [])


def test_a_daemon_works_on_while_the_server_is_away_and_all_of_it_arrives_later(
    server: Server, reader: httpx.Client, tmp_path: Path
) -> None:
    outbox = tmp_path / "outbox.db"
    with Saddle(AWAY, OWNER_TOKEN, outbox=outbox) as saddle:
        session = saddle.open_session(fresh("offline"), task={"title": "Offline"})
        for n in range(20):
            session.emit("note", {"n": n})
        session.result("failed", "why")
        assert not saddle.flush(FLUSH_S, patient=False)
        assert saddle.trouble is not None
        assert "LEDGERD_URL" in saddle.trouble.hint
    with Saddle(server.url, OWNER_TOKEN, outbox=outbox) as saddle:
        assert saddle.flush(FLUSH_S)
    assert len(events_of(reader, session.id)) == 21
    assert seen(reader, f"/api/sessions/{session.id}")["state"] == "failed"


async def test_the_asynchronous_saddle_does_the_same(server: Server, reader: httpx.Client, tmp_path: Path) -> None:
    async with AsyncSaddle(server.url, OWNER_TOKEN, outbox=tmp_path / "outbox.db") as saddle:
        session = await saddle.open_session(task={"title": "Async"})
        assert [await session.emit("note"), await session.comment("Hello.")] == [0, 1]
        await session.usage(input_tokens=1, output_tokens=1)
        assert await session.result("done") is True
        assert await saddle.flush(FLUSH_S)
    assert [event["kind"] for event in events_of(reader, session.id)] == ["note", "comment", "usage", "result"]


def test_every_emit_that_returned_survives_a_kill_of_the_daemon(
    server: Server, reader: httpx.Client, tmp_path: Path
) -> None:
    outbox, session_id = tmp_path / "outbox.db", fresh("killed")
    returned: list[int] = []
    for _ in range(3):
        with emitting(outbox, session_id, 100_000) as process:
            assert process.stdout is not None
            returned += [int(process.stdout.readline()) for _ in range(30)]
            process.kill()
            returned += [int(line) for line in process.stdout if line.endswith(b"\n")]
    assert len(set(returned)) == len(returned)
    with Saddle(server.url, OWNER_TOKEN, outbox=outbox) as saddle:
        assert saddle.flush(FLUSH_S)
    stored = [event["seq"] for event in events_of(reader, session_id)]
    assert stored == list(range(len(stored)))
    assert set(returned) <= set(stored)
    assert len(stored) - len(returned) <= 3


def test_processes_that_share_an_outbox_and_a_session_never_share_a_seq(
    server: Server, reader: httpx.Client, tmp_path: Path
) -> None:
    outbox, session_id = tmp_path / "outbox.db", fresh("shared")
    processes = [emitting(outbox, session_id, 40) for _ in range(4)]
    with Saddle(server.url, OWNER_TOKEN, outbox=outbox) as saddle:
        outputs = [process.communicate(timeout=60)[0] for process in processes]
        assert saddle.flush(FLUSH_S)
    seqs = sorted(int(line) for output in outputs for line in output.split())
    assert seqs == list(range(160))
    assert [event["seq"] for event in events_of(reader, session_id)] == seqs


def test_of_two_senders_one_works_and_the_other_takes_over(
    server: Server, reader: httpx.Client, tmp_path: Path
) -> None:
    outbox = tmp_path / "outbox.db"
    first = Saddle(server.url, OWNER_TOKEN, outbox=outbox)
    with Saddle(server.url, OWNER_TOKEN, outbox=outbox) as second:
        session = second.open_session(task={"title": "Two"})
        session.emit("note")
        assert second.flush(FLUSH_S)
        first.close()
        session.emit("note")
        assert second.flush(FLUSH_S)
    told = seen(reader, f"/api/sessions/{session.id}")
    assert (told["high_seq"], told["deliveries"]["duplicates"]) == (1, 0)


def test_an_event_that_the_server_rejects_holds_up_nothing(saddle_of: Saddle, reader: httpx.Client) -> None:
    session = saddle_of.open_session(task={"title": "Large"})
    session.emit("note", {"n": 0})
    session.emit("note", {"fill": "x" * (5 * 2**20)})
    session.emit("note", {"fill": "x" * (17 * 2**20)})  # more than a body may hold
    session.emit("note", {"n": 3})
    assert saddle_of.flush(FLUSH_S)
    assert [event["seq"] for event in events_of(reader, session.id)] == [0, 3]
    backlog = Backlog(saddle_of.outbox.path, bytes_max=BYTES_MAX)
    letters = {letter.event.seq: letter.code for letter in backlog.dead_letters()}
    backlog.close()
    assert letters == {1: "payload_too_large", 2: "body_too_large"}


def test_a_session_of_a_task_that_is_not_there_is_put_aside(saddle_of: Saddle) -> None:
    bad = saddle_of.open_session(task_id="no-such-task")
    good = saddle_of.open_session(task={"title": "Good"})
    for session in (bad, good):
        session.emit("note")
    assert saddle_of.flush(FLUSH_S, session_id=good.id)
    assert saddle_of.flush(FLUSH_S)
    [refused] = standing(saddle_of.outbox.path).refused
    assert (refused.session_id, refused.code) == (bad.id, "unknown_task")


def test_work_is_asked_for_once_however_often_the_answer_is_lost(
    owner: httpx.Client, reader: httpx.Client, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for queued in seen(owner, "/api/tasks", status="queued")["items"]:
        owner.post(f"/api/tasks/{queued['id']}/cancel")
    task = created(owner, "tasks")
    outbox = tmp_path / "outbox.db"
    with Saddle(server.url, OWNER_TOKEN, outbox=outbox, drain=False) as saddle:
        real = saddle.api

        class Cut:
            def __enter__(self) -> Cut:
                return self

            def __exit__(self, *_: object) -> None:
                pass

            def ask(self, **fields: Any) -> None:
                with real() as api:
                    api.ask(**fields)
                raise ApiError(None, "unreachable", "cut off after the commit")

        monkeypatch.setattr(saddle, "api", lambda **_: Cut())
        with pytest.raises(ApiError):
            saddle.ask()
        monkeypatch.setattr(saddle, "api", real)
        work = saddle.ask()
        assert work is not None
        assert work.task["id"] == task["id"]
        work.session.emit("note")
        work.session.result("done")
        assert saddle.ask() is None
    with Saddle(server.url, OWNER_TOKEN, outbox=outbox) as saddle:
        assert saddle.flush(FLUSH_S)
    [session] = seen(reader, f"/api/tasks/{task['id']}")["sessions"]
    assert (session["session_id"], session["state"]) == (work.session.id, "done")


def test_a_server_that_is_killed_under_load_misses_nothing(tmp_path: Path) -> None:
    outbox = tmp_path / "outbox.db"
    with running(tmp_path) as server, Saddle(server.url, OWNER_TOKEN, outbox=outbox) as saddle:
        session = saddle.open_session(task={"title": "Load"})
        for n in range(300):
            session.emit("note", {"n": n})
            if n == 150:
                server.kill()
        assert not saddle.flush(FLUSH_S, patient=False)
    with running(tmp_path) as server, Saddle(server.url, OWNER_TOKEN, outbox=outbox) as saddle:
        assert saddle.flush(FLUSH_S)
        assert [e["payload"]["n"] for e in events_of(server.client(), session.id)] == list(range(300))


def test_closing_without_a_server_is_quick_and_leaves_all_on_disk(tmp_path: Path) -> None:
    saddle = Saddle(AWAY, OWNER_TOKEN, outbox=tmp_path / "outbox.db")
    saddle.open_session(task={"title": "T"}).emit("note")
    began = time.monotonic()
    saddle.close()
    assert time.monotonic() - began < 5
    assert standing(tmp_path / "outbox.db").waiting == 1


def test_under_kills_cuts_and_an_older_backup_the_ledger_holds_each_thing_once() -> None:
    [entry] = [entry for entry in discover() if entry.name == bundles.outbox.NAME]
    report = run(entry, seed=SystemRandom().getrandbits(32))
    assert report.verdict == "ok", "\n".join(report.lines())
