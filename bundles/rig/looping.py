"""Loops in a project: their files, their runners as processes, and what the project's outbox holds of them."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bundles.rig import loop_agent
from bundles.rig.warm import Run, Warm
from ledger.client.outbox import Outbox
from ledger.events.content import payload_object
from ledger.events.model import Recorded

WAIT_S_MAX = 30.0
ROLES = ("implement", "verify", "orchestrate")

_POLL_S = 0.01


class Project:
    """A folder with loops; a context manager. `url` says where the server is when a runner starts."""

    def __init__(self, folder: Path, url: Callable[[], str], token: str) -> None:
        self.folder = folder
        self.outbox = folder / ".ledgerd" / "outbox.db"
        self._url = url
        folder.mkdir(parents=True)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LEDGERD_")}
        self._environment = {**kept, "LEDGERD_TOKEN": token}
        self._warm = Warm(folder, folder.parent / f"runs-in-{folder.name}")
        self._reading = Outbox(self.outbox)  # for as long as it is looked at, again and again

    def __enter__(self) -> Project:
        return self

    def __exit__(self, *_: object) -> None:
        self._reading.close()
        self._warm.close()

    def ledgerd(self, *words: str) -> str:
        """What a command says. Raises AssertionError where it fails."""
        return _said_by(self._run(*words))

    def start(self, *words: str) -> Run:
        return self._run("loop", "run", *words, "--json")

    def journal(self) -> list[Recorded]:
        """What its outbox has kept, of all its loops."""
        return self._reading.kept()

    def drain(self) -> None:
        """Sends all that waits. Raises AssertionError where it does not get through."""
        self.ledgerd("outbox", "--outbox", str(self.outbox), "drain", "--wait", f"{WAIT_S_MAX:.0f}")

    def _run(self, *words: str) -> Run:
        return self._warm.start(words, {**self._environment, "LEDGERD_URL": self._url()})


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

    def start(self, *words: str) -> Run:
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


def summary_of(runner: Run) -> dict[str, Any]:
    """Waits for the end of a runner, which must be a good one: what its last line says."""
    summary: dict[str, Any] = json.loads(_said_by(runner).splitlines()[-1])
    return summary


def kill(runner: Run) -> None:
    """Also one that has ended."""
    runner.signal(signal.SIGKILL)
    runner.wait(WAIT_S_MAX)


def kill_with_guard(runner: Run, agent: int) -> None:
    """Kills a runner and the guard of its agent, so that neither can end what the agent has started."""
    fields = Path(f"/proc/{agent}/stat").read_text().rpartition(")")[2].split()
    runner.signal(signal.SIGSTOP)  # so that it does not see the guard go
    os.kill(int(fields[1]), signal.SIGKILL)
    kill(runner)


def _said_by(run: Run) -> str:
    """Waits for its end, which must be a good one."""
    if (exit_code := run.wait(WAIT_S_MAX)) is None:
        kill(run)
    if exit_code != 0:
        ended = f"ended with {exit_code}" if exit_code is not None else f"did not end in {WAIT_S_MAX:.0f} s"
        raise AssertionError(f"ledgerd {' '.join(run.words)} {ended}: {run.err.read_text().strip()}")
    return run.out.read_text()


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
