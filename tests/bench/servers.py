"""The servers under measurement, each in a process of its own on a free port of 127.0.0.1."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.bench.processes import BenchFailed, Child

_START_S_MAX = 30.0
_LISTENING = b"listening on http://127.0.0.1:"


class Server:
    """A server that is up. `token` is its owner's; the bare route takes any."""

    def __init__(self, child: Child, port: int, token: str) -> None:
        self.child = child
        self.port = port
        self.token = token

    def open_sessions(self, session_ids: Iterable[str]) -> None:
        """Opens each session under a task of its own."""
        headers = {"Authorization": f"Bearer {self.token}"}
        with httpx.Client(base_url=f"http://127.0.0.1:{self.port}", headers=headers) as client:
            for session_id in session_ids:
                opening = {"session_id": session_id, "task": {"title": f"Bench {session_id}"}}
                client.post("/api/saddle/sessions", json=opening).raise_for_status()


@contextmanager
def ledgerd(store: Path) -> Iterator[Server]:
    """`ledgerd serve` with its defaults, on a SQLite file."""
    with ledgerd_on(f"sqlite:///{store}", secrets.token_urlsafe(24)) as server:
        yield server


@contextmanager
def ledgerd_on(store: str, token: str) -> Iterator[Server]:
    """`ledgerd serve` on the store of that URL; several on one ledger share the owner's token."""
    arguments = ("serve", "--port", "0", "--store", store)
    with Child("ledger.cli", *arguments, env={"LEDGERD_OWNER_TOKEN": token}) as child:
        yield Server(child, _port(child), token)


@contextmanager
def bare_route() -> Iterator[Server]:
    """A Starlette route that reads the body and answers the same receipt each time."""
    with Child("tests.bench.bare_route") as child:
        yield Server(child, _port(child), secrets.token_urlsafe(24))


def _port(child: Child) -> int:
    line = child.hear(_START_S_MAX)
    _, listening, port = line.partition(_LISTENING)
    if not listening:
        raise BenchFailed(f"the server said {line!r}")
    return int(port)
