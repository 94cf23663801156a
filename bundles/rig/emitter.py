"""A daemon in a process of its own, to be killed: emits to a session through an outbox all the time.

`python -m bundles.rig.emitter OUTBOX SESSION TASK SAID`: each event has a token of its own; once `emit` has returned,
its seq and token are a line of the file SAID. When standard input ends it emits no more, sends what waits of the
session, and ends with 0. LEDGERD_URL and LEDGERD_TOKEN say where to.
"""

from __future__ import annotations

import sys
import threading
import uuid
from pathlib import Path

from ledger.client import Saddle

KIND = "note"
PAUSE_S = 0.01  # so that a server that starts beside it finds time
FLUSH_S_MAX = 120.0


def main(outbox: str, session_id: str, task_id: str, said: str) -> int:
    ended = threading.Event()
    threading.Thread(target=_wait_for_the_end, args=(ended,), daemon=True).start()
    with Saddle(outbox=outbox, timeout_s=5) as saddle, Path(said).open("ab", buffering=0) as file:
        session = saddle.open_session(session_id, task={"id": task_id, "title": f"Work of {session_id}"})
        while not ended.wait(PAUSE_S):
            token = uuid.uuid4().hex
            seq = session.emit(KIND, {"token": token})
            file.write(f"{seq} {token}\n".encode())
        return 0 if saddle.flush(FLUSH_S_MAX, session_id=session_id) else 1


def _wait_for_the_end(ended: threading.Event) -> None:
    sys.stdin.read()
    ended.set()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
