"""A home with transcripts, a register and a judge, for the tests of the sweep."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from typing import Any

from ledger.client.saddle import Saddle
from ledger.daemons.sweep import runner
from ledger.daemons.sweep.assembling import assembled
from ledger.daemons.sweep.config import load
from ledger.daemons.sweep.ending import Ended
from ledger.daemons.sweep.journal import State, read_state
from ledger.daemons.sweep.runner import Parts

JUDGE = Path(__file__).with_name("judge.py")
TODAY = date(2026, 3, 9)


class World:
    """`home` is the whole of it: transcripts, register, state, judge."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.transcripts = home / "projects"
        self.register = home / "register"
        self.judge = home / "judge"
        self.said: list[str] = []
        self.today = TODAY
        self._mtime = 1_770_000_000
        for folder in (self.transcripts, self.judge):
            folder.mkdir(parents=True)
        self.judge_does("file")
        self.configure()

    def configure(self, more: str = "", *, first_run: str = "backfill", judge: str = "", scan: str = "") -> None:
        command = json.dumps([sys.executable, "-S", str(JUDGE), str(self.judge)])
        state = "" if "[state]" in more else '[state]\nfile = "sweep.db"\nseen_list = "seen.txt"'
        lines = [
            '[[source]]\ntype = "claude-code"\npath = "projects"\nname = "claude"',
            f'[scan]\nfirst_run = "{first_run}"\n{scan}',
            "[judge]",
            judge or f'backend = "command"\ncommand = {command}',
            '[ledger]\ndir = "register"',
            state,
            more,
        ]
        (self.home / "sweep.toml").write_text("\n".join(lines))

    def judge_does(self, mode: str, answer: str = "") -> None:
        (self.judge / "mode").write_text(mode)
        (self.judge / "answer").write_text(answer)

    @property
    def asked(self) -> list[str]:
        """What the judge was asked so far."""
        return [path.read_text() for path in sorted(self.judge.glob("asked-*"))]

    def session(self, name: str, commands: Iterable[str], *, said: str = "Do it.") -> Path:
        """A transcript of a session in which these commands were run, each a moment later than the one before."""
        rows = [_row(name, "user", {"role": "user", "content": said})]
        for number, command in enumerate(commands):
            call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": command}}
            message = {"id": f"m{number}", "model": "test", "role": "assistant", "content": [call]}
            rows.append(_row(name, "assistant", message))
            result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "done"}
            rows.append(_row(name, "user", {"role": "user", "content": [result]}))
        path = self.transcripts / "-srv-app" / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return self.touched(path)

    def damage(self, name: str, count: int = 1) -> Path:
        """A session with so many candidates."""
        return self.session(name, [f"rm -rf /srv/{name}/{'abcdefghijklmnopqrstuvwxyz'[n]}" for n in range(count)])

    def clean(self, name: str) -> Path:
        return self.session(name, ["ls -l"])

    def touched(self, path: Path) -> Path:
        """Changed after all that was there before."""
        self._mtime += 10
        os.utime(path, (self._mtime, self._mtime))
        return path

    def parts(self, **more: Any) -> Parts:
        def connect(url: str | None) -> tuple[str, Any]:
            raise AssertionError(f"no server is known here, nor {url}")

        def open_saddle(outbox: Path, bytes_max: int) -> Saddle:
            return Saddle("http://127.0.0.1:9", "", outbox=outbox, drain=False, bytes_max=bytes_max)

        how: dict[str, Any] = {
            "open_saddle": open_saddle,
            "say": self.said.append,
            "today": lambda: self.today,
            "sends": False,
        }
        return assembled(load(self.home / "sweep.toml"), connect=connect, **{**how, **more})

    def run(self) -> Ended:
        return runner.run(self.parts())

    def state(self) -> State:
        return read_state(self.home / "sweep.db")

    def seen(self) -> dict[str, str]:
        """How the sessions came to be seen, by their names."""
        return {name.rpartition("/")[2].partition(".")[0]: how for name, how in self.state().sweeps.seen.items()}

    def filed(self) -> list[str]:
        return sorted(one.title for one in self.state().registers.incidents.values())

    def tree(self, without: Callable[[str], bool] = lambda _: False) -> dict[str, tuple[int, bytes]]:
        """All below the home: names, modes and what files hold."""
        return {
            name: (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
            for path in sorted(self.home.rglob("*"))
            if not without(name := str(path.relative_to(self.home)))
        }


def _row(session: str, type_: str, message: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": type_,
        "sessionId": session,
        "cwd": "/srv/app",
        "isSidechain": False,
        "uuid": "u",
        "timestamp": "2026-03-01T10:00:00.000Z",
        "message": message,
    }
