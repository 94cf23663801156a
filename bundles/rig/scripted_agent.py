"""An agent that does what a script says: `python scripted_agent.py FOLDER NAME PROMPT`, as a program of its own.

Each line of `FOLDER/NAME.script` is what one call does, as JSON; the calls take them one after the other. What it was
told stands in `FOLDER/NAME.calls`, one line a call. An action may hold, done in this order: `write` {path: text},
`commit` a message, `until` the name of a file of FOLDER that it waits for, `say` what it prints, `hex` the bytes that
it prints, `exit` its exit code.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

POLL_S = 0.02
HELD_S_MAX = 60.0


class Script:
    """What an agent of that name is to do, and what it has done."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._lines = folder / f"{name}.script"
        self._calls = folder / f"{name}.calls"

    @property
    def words(self) -> list[str]:
        """The command, as an agent's argv template."""
        return [sys.executable, "-IS", str(Path(__file__).resolve()), str(self._folder), self._name, "{prompt}"]

    def add(self, *actions: dict[str, Any] | str) -> Script:
        """A text is an action that says it."""
        with self._lines.open("a", encoding="utf-8") as file:
            for action in actions:
                file.write(json.dumps({"say": action} if isinstance(action, str) else action) + "\n")
        return self

    def prompts(self) -> list[str]:
        """What it was told, call by call."""
        if not self._calls.exists():
            return []
        return [json.loads(line) for line in self._calls.read_text(encoding="utf-8").splitlines()]

    def next_action(self, prompt: str) -> dict[str, Any]:
        number = len(self.prompts())
        with self._calls.open("a", encoding="utf-8") as file:
            file.write(json.dumps(prompt) + "\n")
        lines = self._lines.read_text(encoding="utf-8").splitlines()
        if number >= len(lines):
            return {"say": f"{self._name} has no script for call {number + 1}", "exit": 9}
        action: dict[str, Any] = json.loads(lines[number])
        return action


def supervision(decision: str, feedback: str = "", **more: Any) -> str:
    """A reply of a master."""
    return f"Looked at.\nLEDGERD_SUPERVISION {json.dumps({'decision': decision, 'feedback': feedback, **more})}"


def self_repair(decision: str, feedback: str = "", addendum: str = "") -> str:
    """A reply of a repair."""
    said = {"decision": decision, "feedback": feedback, "prompt_addendum": addendum}
    return f"Looked at.\nLEDGERD_SELF_REPAIR {json.dumps(said)}"


def main(folder: Path, name: str, prompt: Path) -> int:
    action = Script(folder, name).next_action(prompt.read_text(encoding="utf-8"))
    for path, text in action.get("write", {}).items():
        Path(path).write_text(text, encoding="utf-8")
    if "commit" in action:
        _git(["add", "--all"])
        _git(["commit", "--quiet", "--message", action["commit"]])
    if "until" in action:
        (folder / f"{name}.here").touch()
        _wait_for(folder / action["until"])
    sys.stdout.write(action.get("say", ""))
    sys.stdout.flush()
    sys.stdout.buffer.write(bytes.fromhex(action.get("hex", "")))
    return int(action.get("exit", 0))


def _git(words: Iterable[str]) -> None:
    import subprocess  # most calls need none: an agent is to start fast

    who = ["-c", "user.name=Agent", "-c", "user.email=agent@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *words], check=True)  # noqa: S607 — whichever git there is


def _wait_for(path: Path) -> None:
    ends = time.monotonic() + HELD_S_MAX
    while not path.exists() and time.monotonic() < ends:
        time.sleep(POLL_S)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])))
