"""Agents for tests: small programs that are really run, and what the outbox holds of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ledger.client.saddle import Saddle, Session
from ledger.daemons.agent import Limits, Reply, Turn, run_turn
from ledger.events.content import payload_object

ACTOR = "implement"

_EVENTS = (
    "SELECT kind, actor, payload FROM events JOIN streams USING (stream_n) WHERE stream = ? AND seq >= 0 ORDER BY seq"
)


def a_session(saddle: Saddle) -> Session:
    return saddle.open_session(task={"title": "T"})


def emitted(session: Session) -> list[tuple[str, str, dict[str, Any]]]:
    with session._saddle.outbox._file.reading() as db:
        rows = db.execute(_EVENTS, (session.id,)).fetchall()
    return [(kind, actor, payload_object(payload)) for kind, actor, payload in rows]


def texts(session: Session, stream: str = "stdout") -> list[str]:
    return [
        payload["text"] for kind, _, payload in emitted(session) if kind == "output" and payload["stream"] == stream
    ]


def shell(script: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", script)


def python(script: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", script)


class Harness:
    """Runs turns in a folder of their own. `grace_s` is short: whoever does not listen is ended soon."""

    def __init__(self, session: Session, folder: Path) -> None:
        self.session = session
        self.folder = folder
        self.prompt_path = folder / "outputs" / "prompt.md"

    def turn(self, command: tuple[str, ...] | str, prompt: str = "Do it.", **more: Any) -> Turn:
        more.setdefault("limits", Limits(time_s=30, grace_s=0.2))
        more.setdefault("cwd", self.folder)
        return Turn(command=command, prompt=prompt, prompt_path=self.prompt_path, **more)

    def run(self, command: tuple[str, ...] | str, prompt: str = "Do it.", *, stop: Any = None, **more: Any) -> Reply:
        on_start = more.pop("on_start", None)
        return run_turn(self.turn(command, prompt, **more), self.session, actor=ACTOR, stop=stop, on_start=on_start)


class WhenThere:
    """A stop that asks to end once a file is there: the agent says that it has come so far."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def is_set(self) -> bool:
        return self._path.exists()


def is_running(pid: int) -> bool:
    """True if such a process runs; one that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def wait_for(holds: Callable[[], Any], *, timeout_s: float = 20) -> Any:
    deadline = time.monotonic() + timeout_s
    while not (value := holds()):
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)
    return value


def number_in(path: Path) -> int:
    """The number that a program has written to a file, once it is there."""
    return int(wait_for(lambda: path.exists() and path.read_text().strip()))
