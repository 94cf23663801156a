"""A judge for the tests, as a real process: `python judge.py FOLDER`. FOLDER/mode says what it does; what it was
asked is kept in FOLDER/asked-1, asked-2 …

The modes: `file` makes an incident of each session, `exclude` excludes everything, `empty` finds nothing, `say`
prints FOLDER/answer, `claude` files as the command of that name would, `fail` ends with 3, `hang` never ends.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path


def main(folder: Path) -> None:
    prompt = sys.stdin.read()
    number = 1 + len(list(folder.glob("asked-*")))
    (folder / f"asked-{number}").write_text(prompt)
    mode = (folder / "mode").read_text().strip()
    if mode == "fail":
        sys.stderr.write("no credit left for token=abcdefghijklmnop1234\n")
        sys.exit(3)
    if mode == "hang":
        time.sleep(60)
    if mode == "say":
        sys.stdout.write((folder / "answer").read_text())
        return
    candidates = [json.loads(line) for line in prompt.splitlines() if re.match(r'\{"id": "C', line)]
    incidents, excluded = [], []
    if mode in ("file", "claude"):
        sessions: dict[str, list[str]] = {}
        for one in candidates:
            sessions.setdefault(one["session"].split()[-1], []).append(one["id"])
        incidents = [_incident(session, ids) for session, ids in sessions.items()]
    elif mode == "exclude":
        excluded = [{"candidates": [one["id"] for one in candidates], "reason": "All of it is harmless."}]
    answer = json.dumps({"incidents": incidents, "excluded": excluded, "patterns": ""})
    if mode == "claude":
        usage = {"input_tokens": 1200, "output_tokens": 80}
        answer = json.dumps({"type": "result", "result": f"Here:\n{answer}", "total_cost_usd": 0.5, "usage": usage})
    print(answer)


def _incident(session: str, ids: list[str]) -> dict[str, object]:
    return {
        "title": f"Damage in {session}",
        "date": "2026-03-01",
        "severity": "HIGH",
        "category": "data-loss",
        "what": "A folder was removed.",
        "cost": "A day of work.",
        "lesson": "Look before removing.",
        "candidates": ids,
        "why": "Nobody had asked for it.",
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
