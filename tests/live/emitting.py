"""Emits in a process of its own, to be killed: `python -m tests.live.emitting OUTBOX SESSION COUNT`.

Says the seq of each event on standard output once `emit` has returned. Sends nothing.
"""

from __future__ import annotations

import sys

from ledger.client import Saddle


def main(outbox: str, session_id: str, count: int) -> None:
    with Saddle("http://127.0.0.1:9", "none", outbox=outbox, drain=False) as saddle:
        session = saddle.open_session(session_id, task={"title": "Emit"})
        for _ in range(count):
            print(session.emit("note", {"fill": "x" * 100}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
