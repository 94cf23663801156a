"""Loops in a project: their files, their runners as processes, and what the project's outbox holds of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bundles.rig import loop_agent
from ledger.client.outbox import Outbox
from ledger.events.content import payload_object
from ledger.events.model import Recorded

WAIT_S_MAX = 30.0
ROLES = ("implement", "verify", "orchestrate")

_POLL_S = 0.01
_PACKAGES = Path(__file__).resolve().parents[2]


class Project:
    """A folder with loops; a context manager. `url` says where the server is when a runner starts."""

    def __init__(self, folder: Path, url: Callable[[], str], token: str) -> None:
        self.folder = folder
        self.outbox = folder / ".ledgerd" / "outbox.db"
        self._url = url
        folder.mkdir(parents=True)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LEDGERD_")}
        path = os.pathsep.join(filter(None, [str(_PACKAGES), kept.get("PYTHONPATH")]))
        self._environment = {**kept, "PYTHONPATH": path, "LEDGERD_TOKEN": token}
        self._reading = Outbox(self.outbox)  # for as long as it is looked at, again and again

    def __enter__(self) -> Project:
        return self

    def __exit__(self, *_: object) -> None:
        self._reading.close()

    def ledgerd(self, *words: str) -> str:
        """What a command says. Raises AssertionError where it fails."""
        done = subprocess.run(
            [sys.executable, "-m", "ledger.cli", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WAIT_S_MAX,
            env=self._with_url(),
            cwd=self.folder,
            check=False,
        )
        if done.returncode != 0:
            raise AssertionError(f"ledgerd {' '.join(words)} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "ledger.cli", "loop", "run", *words, "--json"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self._with_url(),
            cwd=self.folder,
        )

    def journal(self) -> list[Recorded]:
        """What its outbox has kept, of all its loops."""
        return self._reading.kept()

    def drain(self) -> None:
        """Sends all that waits. Raises AssertionError where it does not get through."""
        self.ledgerd("outbox", "--outbox", str(self.outbox), "drain", "--wait", f"{WAIT_S_MAX:.0f}")

    def _with_url(self) -> dict[str, str]:
        return {**self._environment, "LEDGERD_URL": self._url()}


class Loop:
    """A loop of a project, whose agents are `loop_agent.py`, and what those have done. `verdicts` are what its
    verifier says round by round, `writes` what its implementer does. `more` is for loop.json."""

    def __init__(
        self,
        project: Project,
        name: str,
        *,
        verdicts: Sequence[dict[str, Any]],
        writes: dict[str, str] | None = None,
        **more: Any,
    ) -> None:
        self.name = name
        self._project = project
        self._agents = project.folder.parent / f"agents-of-{name}"
        self._agents.mkdir()
        (self._agents / "verdicts").write_text(json.dumps(verdicts))
        (self._agents / "writes").write_text(json.dumps(writes or {}))
        home = project.folder / ".ledgerd" / "loops" / name
        home.mkdir(parents=True)
        for role in ROLES:
            (home / f"{role}.md").write_text(f"Work as {role} on this:\n")
        words = [sys.executable, "-IS", loop_agent.__file__, str(self._agents)]
        roles = {role: {"prompt": f"{role}.md"} for role in ROLES}
        (home / "loop.json").write_text(json.dumps({"roles": roles, "harness": {"command": words}, **more}))
        project.ledgerd("loop", "task", name, f"The task of {name}.")

    def start(self, *words: str) -> subprocess.Popen[str]:
        return self._project.start("--loop", self.name, *words)

    def tick(self) -> dict[str, Any]:
        """A tick to its end: its summary."""
        return summary_of(self.start())

    def shown(self) -> dict[str, Any]:
        shown: dict[str, Any] = json.loads(self._project.ledgerd("loop", "show", self.name, "--json"))
        return shown

    def hold(self, role: str) -> None:
        """Agents of that role wait from now on, until it is let go."""
        (self._agents / f"hold-{role}").touch()

    def let_go(self, role: str) -> None:
        (self._agents / f"hold-{role}").unlink()

    def begun(self) -> list[tuple[int, str, int, int]]:
        """Tick, role, process and its child, of each agent that began."""
        return [(int(n), role, int(pid), int(child)) for n, role, pid, child in map(str.split, self._lines("begun"))]

    def ended(self) -> list[str]:
        """`TICK ROLE` of each agent that came to its end."""
        return self._lines("ended")

    def journal(self) -> list[Recorded]:
        """What is kept of its own session, in order."""
        prefix = f"loop-{self.name}-"
        return [
            event
            for event in self._project.journal()
            if event.session_id.startswith(prefix) and not event.session_id.endswith("-agents")
        ]

    def facts(self) -> list[tuple[str, int | None, str | None]]:
        """Kind, tick and role of each event."""
        payloads = ((event.kind, payload_object(event.payload)) for event in self.journal())
        return [(kind, payload.get("tick"), payload.get("role")) for kind, payload in payloads]

    def end_all(self) -> None:
        for pid in self.living():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def living(self) -> list[int]:
        """The processes of its agents that run."""
        return [pid for _, _, *pids in self.begun() for pid in pids if is_running(pid)]

    def _lines(self, name: str) -> list[str]:
        path = self._agents / name
        text = path.read_text() if path.exists() else ""
        return text[: text.rfind("\n") + 1].splitlines()


def summary_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Waits for the end of a runner, which must be a good one: what its last line says."""
    try:
        said, errors = process.communicate(timeout=WAIT_S_MAX)
    except subprocess.TimeoutExpired:
        kill(process)
        raise AssertionError(f"a runner did not end in {WAIT_S_MAX:.0f} s") from None
    if process.returncode != 0:
        raise AssertionError(f"a runner ended with {process.returncode}: {errors.strip()}")
    summary: dict[str, Any] = json.loads(said.splitlines()[-1])
    return summary


def kill(process: subprocess.Popen[str]) -> None:
    """Also one that has ended."""
    if process.poll() is None:
        process.kill()
        process.communicate()


def kill_with_guard(process: subprocess.Popen[str], agent: int) -> None:
    """Kills a runner and the guard of its agent, so that neither can end what the agent has started."""
    fields = Path(f"/proc/{agent}/stat").read_text().rpartition(")")[2].split()
    process.send_signal(signal.SIGSTOP)  # so that it does not see the guard go
    os.kill(int(fields[1]), signal.SIGKILL)
    kill(process)


def wait_for(what: str, holds: Callable[[], Any]) -> None:
    ends = time.monotonic() + WAIT_S_MAX
    while not holds():
        if time.monotonic() > ends:
            raise AssertionError(f"waited {WAIT_S_MAX:.0f} s in vain: {what}")
        time.sleep(_POLL_S)


def is_running(pid: int) -> bool:
    """False too for one that only waits to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
