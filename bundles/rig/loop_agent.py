"""An agent of a loop, of any role: `python loop_agent.py FOLDER`, in the environment that a loop gives its agents.

When it begins it adds `TICK ROLE PID CHILD` to `FOLDER/begun`: CHILD is a process that has left it, and that nobody
would miss. It waits for as long as `FOLDER/hold-ROLE` is there. The implementer writes what `FOLDER/writes` says,
{path: text}. The verifier says the verdict that `FOLDER/verdicts` has for its tick, the last one from then on. At the
end it adds `TICK ROLE` to `FOLDER/ended`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

POLL_S = 0.005
HELD_S_MAX = 30.0


def main(folder: Path) -> None:
    role, tick = os.environ["LEDGERD_LOOP_ROLE"], int(os.environ["LEDGERD_LOOP_TICK"])
    _add(folder / "begun", f"{tick} {role} {os.getpid()} {_child()}")
    ends = time.monotonic() + HELD_S_MAX
    while (folder / f"hold-{role}").exists() and time.monotonic() < ends:
        time.sleep(POLL_S)
    if role == "implement":
        for path, text in json.loads((folder / "writes").read_text()).items():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(f"{text} of round {tick}\n")
    verdicts = json.loads((folder / "verdicts").read_text())
    said = json.dumps(verdicts[min(tick, len(verdicts)) - 1]) if role == "verify" else f"{role} has worked."
    os.write(1, said.encode())
    _add(folder / "ended", f"{tick} {role}")


def _child() -> int:
    pid = os.fork()
    if not pid:
        os.setsid()
        os.execvp("sleep", ["sleep", "60"])  # noqa: S606, S607
    return pid


def _add(path: Path, line: str) -> None:
    with path.open("a") as file:
        file.write(line + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
