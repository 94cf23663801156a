"""Restarts, cut connections, full disks, a second server: nothing acknowledged is lost, nothing is stored twice."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.live.serving import (
    START_S_MAX,
    Server,
    acted,
    assert_problem,
    created,
    event,
    events_of,
    opened,
    push,
    result,
    running,
    seen,
    serve_command,
    server_environment,
    token_of,
    wait_for_gauge,
)

MIB = 2**20


@pytest.mark.parametrize("end", [Server.stop, Server.kill], ids=["stopped", "killed"])
def test_a_server_that_starts_again_tells_the_same_story(tmp_path: Path, end: Callable[[Server], object]) -> None:
    with running(tmp_path) as server:
        saddle, owner = server.saddle("anvil"), server.client()
        token = token_of(saddle)
        goal = acted(owner, created(owner, "goals"), "start")
        session_id, _ = opened(saddle, task_id=goal["run_task_id"], contiguous=True)
        batch = [event(5001, "comment", {"body": "Half way."}), event(5002, "tool_call", {"tool": "x", "args": {}})]
        push(saddle, session_id, batch)
        push(saddle, session_id, [event(5001, "comment", {"body": "Other words."})])
        result(saddle, session_id, "failed", summary="no way")
        paths = [f"/api/goals/{goal['id']}", f"/api/tasks/{goal['run_task_id']}", f"/api/sessions/{session_id}"]
        before, log = [told(owner, path) for path in paths], seen(owner, "/api/events")

        end(server)
        server.start()
        saddle, owner = server.client(token), server.client()
        assert [told(owner, path) for path in paths] == before
        assert seen(owner, "/api/events") == log
        assert seen(owner, "/api/events", after=log["cursor"])["events"] == []
        again = push(saddle, session_id, batch)
        assert (again["stored"], again["duplicates"], again["cursor"]) == (0, 2, log["cursor"])
        assert result(saddle, session_id, "failed", summary="no way")["duplicate"]
        rows = seen(owner, paths[0])["events"]
        assert [row["kind"] for row in rows].count("goal-failed") == 1


def told(reader: httpx.Client, path: str) -> dict[str, Any]:
    """What a path says but for the counts of deliveries: they stand beside the log, and a kill may cost the last."""
    return {name: value for name, value in seen(reader, path).items() if name not in ("integrity", "deliveries")}


def test_bookkeeping_that_a_restart_forgets_is_brought_back_by_a_fresh_ask(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        saddle, owner = server.saddle("anvil"), server.client()
        token = token_of(saddle)
        task_id = created(owner, "tasks")["id"]
        saddle.post("/api/saddle/heartbeat", json={"host": "forge"})
        server.stop()
        server.start()
        assert server.client(token).post("/api/saddle/ask", json={"host": "forge"}).json()["task"]["id"] == task_id
        [me] = seen(server.client(), "/api/fleet")["saddles"]
        assert (me["name"], me["host"], me["working"]) == ("anvil", "forge", 1)


def test_a_login_outlives_a_restart(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        browser = server.client(None)
        browser.post("/login", data={"token": server.owner_token})
        cookie = {"Cookie": f"ledgerd={browser.cookies['ledgerd']}"}
        server.stop()
        server.start()
        assert server.client(None).get("/", headers=cookie).status_code == 200


def test_a_chunk_whose_answer_was_cut_off_is_all_duplicates_when_sent_again(
    server: Server, saddle: httpx.Client, reader: httpx.Client
) -> None:
    session_id, _ = opened(saddle)
    events = [event(seq) for seq in range(200)]
    position = float(seen(reader, "/api/events", limit=5000)["events"][-1]["position"])
    address, body = urlsplit(server.url), json.dumps({"session_id": session_id, "events": events}).encode()
    head = f"POST /api/saddle/chunks HTTP/1.1\r\nHost: ledger\r\nAuthorization: Bearer {token_of(saddle)}\r\n"
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    wait_for_gauge(reader, 'ledgerd_position{bucket="0"}', lambda value: value >= position + 200)
    again = push(saddle, session_id, events)
    assert (again["stored"], again["duplicates"], again["conflicts"]) == (0, 200, [])
    assert len(events_of(reader, session_id)) == 200


def test_a_second_server_on_the_same_file_is_refused(server: Server, owner: httpx.Client) -> None:
    second = subprocess.run(
        serve_command(server.store),
        env=server_environment({}),
        capture_output=True,
        text=True,
        timeout=START_S_MAX,
    )
    assert (second.returncode, second.stdout) == (1, "")
    assert f"held by another ledgerd (process {server.pid})" in second.stderr
    assert "--store" in second.stderr
    assert "Traceback" not in second.stderr
    assert created(owner, "tasks")["status"] == "queued"


def pushed_until_refused(saddle: httpx.Client, session_id: str) -> tuple[int, httpx.Response]:
    """How many events of 256 KiB were acknowledged, and the answer that the next one was given."""
    for seq in range(200):
        text = os.urandom(128 * 1024).hex()
        body = {"session_id": session_id, "events": [event(seq, payload={"text": text})]}
        answer = saddle.post("/api/saddle/chunks", json=body)
        if answer.status_code != 200:
            return seq, answer
    raise AssertionError("50 MiB found room where there was none")


def assert_whole(server: Server, session_id: str, acknowledged: int) -> None:
    """All that was acknowledged can be read."""
    reader = server.client()
    assert [one["seq"] for one in events_of(reader, session_id)] == list(range(acknowledged))
    assert seen(reader, f"/api/sessions/{session_id}")["high_seq"] == acknowledged - 1


def test_a_disk_that_fills_up_is_said_and_it_goes_on_when_there_is_room(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = 'mount -t tmpfs -o size=8m tmpfs "$0" && exec "$@"'
    own_mounts = ["unshare", "--map-root-user", "--mount", "sh", "-c", mounted, str(disk)]
    if subprocess.run([*own_mounts, "true"], capture_output=True).returncode != 0:
        pytest.skip("a disk of its own takes user namespaces, and they are not allowed here")
    with running(tmp_path, store=disk / "ledger.db", command=own_mounts) as server:
        inside = Path(f"/proc/{server.pid}/root{disk}")
        filler = inside / "filler"
        filler.write_bytes(bytes(4 * MIB))
        saddle = server.saddle("anvil")
        session_id, task_id = opened(saddle)
        acknowledged, refused = pushed_until_refused(saddle, session_id)
        assert acknowledged > 1
        problem = assert_problem(refused, 503, "storage_full")
        assert "room" in problem["hint"]
        assert int(refused.headers["retry-after"]) >= 1
        assert_whole(server, session_id, acknowledged)

        filler.unlink()
        again = push(saddle, session_id, [event(seq) for seq in range(acknowledged, acknowledged + 3)])
        assert (again["stored"], again["duplicates"]) == (3, 0)
        assert_whole(server, session_id, acknowledged + 3)
        assert result(saddle, session_id, "done")["task"] == {"id": task_id, "status": "done"}


def test_a_file_that_may_not_grow_is_said_and_it_goes_on_when_it_may(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        saddle = server.saddle("anvil")
        session_id, _ = opened(saddle)
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (2 * MIB, resource.RLIM_INFINITY))
        acknowledged, refused = pushed_until_refused(saddle, session_id)
        assert acknowledged > 1
        problem = assert_problem(refused, 503)
        assert problem["code"] in ("storage_full", "storage_unavailable")
        assert_whole(server, session_id, acknowledged)

        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert push(saddle, session_id, [event(acknowledged)])["stored"] == 1
        server.kill()
        server.start()
        assert_whole(server, session_id, acknowledged + 1)
