"""A project with one loop, whose agents are small scripts, and ticks of it in this process."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ledger.client.saddle import Saddle
from ledger.daemons.agent import Stop
from ledger.daemons.loop.folders import LoopFolder
from ledger.daemons.loop.handling import set_task
from ledger.daemons.loop.journal import Journal, open_journal
from ledger.daemons.loop.ticking import Summary, tick
from ledger.events.content import payload_object
from projections.loop_state import Loop

PASS = """echo '{"pass": true, "score": 0.9, "reasons": ["all of it"]}'"""
FAIL = """echo '{"pass": false, "score": 0.4, "reasons": ["half of it"]}'"""

_NO_SERVER = "http://127.0.0.1:9"


class Bench:
    """`project` holds the loop "l". What each role's agent does is a script for sh, in which $1 is the prompt, $2 the
    output and $3 the artifact; it notes its role in `called`, outside of the project."""

    def __init__(self, folder: Path, roles: Sequence[str] = ("implement", "verify")) -> None:
        self.project = folder / "project"
        self.project.mkdir()
        self.scripts = folder / "agents"
        self.scripts.mkdir()
        self.called = self.scripts / "called"
        self.folder = LoopFolder(self.project, "l")
        self.stop = Stop()
        self.folder.home.mkdir(parents=True)
        for role in ("implement", "verify", "orchestrate"):
            (self.folder.home / f"{role}.md").write_text(f"You {role}: {{task}}\n")
            self.agent(role, "true")
        self.agent("verify", PASS)
        (self.scripts / "agent.sh").write_text(
            f'echo "$LEDGERD_LOOP_ROLE" >> {self.called}; . {self.scripts}/"$LEDGERD_LOOP_ROLE".sh\n'
        )
        self.config: dict[str, Any] = {
            "roles": {role: {"prompt": f"{role}.md"} for role in roles},
            "harness": {"command": ["sh", str(self.scripts / "agent.sh"), "{prompt}", "{output}", "{artifact}"]},
        }
        self.configure()

    def configure(self, **parts: Any) -> Bench:
        self.config |= parts
        self.folder.config.write_text(json.dumps(self.config))
        return self

    def agent(self, role: str, script: str) -> Bench:
        (self.scripts / f"{role}.sh").write_text(script + "\n")
        return self

    def roles(self, *roles: str) -> Bench:
        return self.configure(roles={role: {"prompt": f"{role}.md"} for role in roles})

    def task(self, text: str = "Do it.") -> Bench:
        set_task(self.folder, self.saddle, text)
        return self

    def repository(self) -> Bench:
        """Makes the project a git repository with one commit."""
        (self.project / "src").mkdir()
        (self.project / "src" / "a.py").write_text("a = 1\n")
        (self.project / "README.md").write_text("Read me.\n")
        self.git("init", "--quiet")
        self.git("add", ".")
        self.git("commit", "--quiet", "-m", "first")
        return self

    def git(self, *words: str) -> str:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        return subprocess.run(
            ["git", *identity, *words], cwd=self.project, check=True, capture_output=True, text=True
        ).stdout

    def saddle(self) -> Saddle:
        return Saddle(_NO_SERVER, "", outbox=self.folder.outbox, drain=False)

    @contextmanager
    def while_it_runs(self, role: str, do: Callable[[], object], then: str = "true") -> Iterator[None]:
        """Does something while the role's agent runs, which then goes on. Of a tick inside the block."""
        here, go = self.scripts / "here", self.scripts / "go"
        self.agent(role, f"touch {here}; while [ ! -e {go} ]; do sleep 0.01; done; {then}")
        given_up = threading.Event()

        def wait_and_do() -> None:
            while not here.exists() and not given_up.wait(0.005):
                pass
            if not given_up.is_set():
                do()
            go.touch()

        waiting = threading.Thread(target=wait_and_do)
        waiting.start()
        try:
            yield
        finally:
            given_up.set()
            waiting.join()
            here.unlink(missing_ok=True)
            go.touch()

    def tick(self) -> Summary:
        return tick(self.folder, self.saddle, self.stop)

    @property
    def calls(self) -> list[str]:
        return self.called.read_text().split() if self.called.exists() else []

    @property
    def loop(self) -> Loop:
        with self.saddle() as saddle:
            return self.journal(saddle).read_usage()

    def journal(self, saddle: Saddle) -> Journal:
        journal = open_journal(saddle, self.folder)
        assert journal is not None
        return journal

    def events(self, *kinds: str) -> list[tuple[str, dict[str, Any]]]:
        """What the loop's own session holds, of these kinds or all."""
        with self.saddle() as saddle:
            kept = self.journal(saddle).session.kept()
        return [(e.kind, payload_object(e.payload)) for e in kept if not kinds or e.kind in kinds]

    def state(self) -> dict[str, Any]:
        return dict(json.loads(self.folder.state_view.read_text()))

    def sh(self, script: str) -> None:
        """Does in the project what an agent would do there."""
        subprocess.run(["sh", "-ec", script], cwd=self.project, check=True, capture_output=True)
