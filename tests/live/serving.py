"""A server in its own process and a client for each role: what the tests of this folder talk to."""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import httpx

OWNER_TOKEN = "an-owner-token-of-the-tests"
START_S_MAX = 90.0
STOP_S_MAX = 60.0
REQUEST_S_MAX = 60.0
ROOT = Path(__file__).resolve().parents[2]

_LISTENING = "ledgerd listening on "
_numbers = itertools.count(1)


class Server:
    """One server on a store of its own. It takes a new port at each start; `stderr` is that of all its starts."""

    def __init__(
        self,
        folder: Path,
        *,
        store: Path | None = None,
        environment: Mapping[str, str] | None = None,
        command: Sequence[str] = (),
    ) -> None:
        """`command` is what the server's own command line is given to, as its last arguments."""
        self.store = store or folder / "ledger.db"
        self.url = ""
        self.owner_token = OWNER_TOKEN
        self._environment = dict(environment or {})
        self._before = list(command)
        self._errors = folder / "stderr.txt"
        self._process: subprocess.Popen[bytes] | None = None
        self._clients: list[httpx.Client] = []

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> Server:
        with self._errors.open("ab") as errors:
            self._process = subprocess.Popen(
                [*self._before, *serve_command(self.store)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=server_environment(self._environment),
            )
        assert self._process.stdout is not None
        lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=_drain, args=(self._process.stdout, lines), daemon=True).start()
        try:
            line = lines.get(timeout=START_S_MAX)
        except queue.Empty:
            line = ""
        if not line.startswith(_LISTENING):
            self.kill()
            raise AssertionError(f"the server did not start; it said {line!r}\n{self.stderr}")
        self.url = line.removeprefix(_LISTENING)
        return self

    def interrupt(self) -> None:
        """Asks it to stop, and does not wait."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)

    def wait(self) -> int:
        """Waits for its end; the exit code, 0 where it has ended before."""
        process, self._process = self._process, None
        for client in self._clients:
            client.close()
        self._clients.clear()
        try:
            return process.wait(STOP_S_MAX) if process is not None else 0
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"the server did not end in {STOP_S_MAX} s\n{self.stderr}") from None

    def stop(self) -> int:
        """Asks it to stop; the exit code."""
        self.interrupt()
        return self.wait()

    def kill(self) -> None:
        """Ends it without a chance to do anything more."""
        if self._process is not None:
            self._process.kill()
            self.wait()

    @property
    def stderr(self) -> str:
        return self._errors.read_text(errors="replace") if self._errors.exists() else ""

    def client(self, token: str | None = OWNER_TOKEN) -> httpx.Client:
        """A client that ends with the server; without a token where it is None."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        client = httpx.Client(base_url=self.url, headers=headers, timeout=REQUEST_S_MAX, trust_env=False)
        self._clients.append(client)
        return client

    def saddle(self, name: str) -> httpx.Client:
        return self.client(self.token("saddle", name))

    def token(self, role: str, name: str) -> str:
        answer = self.client().post("/api/tokens", json={"role": role, "name": name})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["token"])


@contextmanager
def running(folder: Path, **how: Any) -> Iterator[Server]:
    """A server while the block runs; after it, it must have stopped with 0."""
    server = Server(folder, **how).start()
    try:
        yield server
    except BaseException:
        server.kill()
        raise
    assert server.stop() == 0, server.stderr


def serve_command(store: Path) -> list[str]:
    return [sys.executable, "-m", "ledger.cli", "serve", "--port", "0", "--store", f"sqlite:///{store}"]


def server_environment(more: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LEDGERD_")}
    return {**kept, "PYTHONPATH": str(ROOT), "LEDGERD_OWNER_TOKEN": OWNER_TOKEN, **more}


def _drain(stream: IO[bytes], lines: queue.SimpleQueue[str]) -> None:
    with contextlib.closing(stream):
        for line in stream:
            lines.put(line.decode().strip())
    lines.put("")


# What the tests say again and again


def fresh(what: str) -> str:
    """An id that no other test of this run uses."""
    return f"{what}-{next(_numbers)}"


def event(seq: Any, kind: str = "message", payload: Any = None, **fields: Any) -> dict[str, Any]:
    body = {"role": "assistant", "text": f"word {seq}"} if payload is None else payload
    return {"seq": seq, "kind": kind, "actor": "model", "payload": body, **fields}


def opened(saddle: httpx.Client, **fields: Any) -> tuple[str, str]:
    """A new session on a task of its own, unless the fields name one: its id and the task's."""
    if "task_id" not in fields:
        fields.setdefault("task", {"title": "made for a test"})
    answer = saddle.post("/api/saddle/sessions", json={"session_id": fresh("session"), **fields})
    assert answer.status_code == 201, answer.text
    return answer.json()["session_id"], answer.json()["task_id"]


def push(saddle: httpx.Client, session_id: Any, events: Sequence[Any], **fields: Any) -> dict[str, Any]:
    """The receipt of a chunk."""
    answer = saddle.post("/api/saddle/chunks", json={"session_id": session_id, "events": list(events), **fields})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def push_raw(saddle: httpx.Client, session_id: str, events: bytes) -> dict[str, Any]:
    """The receipt of a chunk whose list of events is given as JSON text."""
    answer = saddle.post("/api/saddle/chunks", content=chunk_text(session_id, events))
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def chunk_text(session_id: str, events: bytes) -> bytes:
    return b'{"session_id": "%s", "events": %s}' % (session_id.encode(), events)


def result(saddle: httpx.Client, session_id: str, state: str, **fields: Any) -> dict[str, Any]:
    """The receipt of a result."""
    answer = saddle.post("/api/saddle/results", json={"session_id": session_id, "state": state, **fields})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def created(owner: httpx.Client, what: str, **fields: Any) -> dict[str, Any]:
    """A new goal, task or project."""
    fields.setdefault("title", f"made for a test of {what}")
    answer = owner.post(f"/api/{what}", json=fields)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def acted(owner: httpx.Client, thing: Mapping[str, Any], action: str, **body: Any) -> dict[str, Any]:
    """The thing after a decision that its JSON offers."""
    offer = thing["actions"][action]
    answer = owner.request(offer["method"], offer["href"], json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def seen(reader: httpx.Client, path: str, **query: Any) -> dict[str, Any]:
    answer = reader.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def events_of(reader: httpx.Client, session_id: str) -> list[dict[str, Any]]:
    """The events that a saddle pushed to a session, in seq order."""
    return list(seen(reader, f"/api/sessions/{session_id}/events", **{"from": 0, "limit": 5000})["events"])


def token_of(client: httpx.Client) -> str:
    return client.headers["authorization"].removeprefix("Bearer ")


def wait_for_listeners(reader: httpx.Client, count: int) -> None:
    """Returns once so many asks and live readers wait for what moves."""
    wait_for_gauge(reader, "ledgerd_live_readers", lambda value: value == count)


def wait_for_gauge(reader: httpx.Client, name: str, wanted: Callable[[float], bool]) -> None:
    """Returns once the server's metric of this name is as wanted."""
    deadline, value = time.monotonic() + REQUEST_S_MAX, float("nan")
    while time.monotonic() < deadline:
        [line] = [line for line in reader.get("/metrics").text.splitlines() if line.startswith(f"{name} ")]
        value = float(line.removeprefix(name))
        if wanted(value):
            return
    raise AssertionError(f"{name} stands at {value}")


def assert_problem(answer: httpx.Response, status: int, code: str | None = None) -> dict[str, Any]:
    """The problem that the answer must be."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = dict(answer.json())
    assert {"type", "title", "status", "code", "detail"} <= set(problem)
    assert set(problem) <= {"type", "title", "status", "code", "detail", "hint", "field", "last_seq"}
    assert problem["status"] == status
    if code is not None:
        assert problem["code"] == code
    return problem
