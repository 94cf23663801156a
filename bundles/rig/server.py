"""A ledgerd server in its own process, on a store of its own, over any number of starts."""

from __future__ import annotations

import os
import queue
import secrets
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO

from bundles.rig.deadline import Deadline

START_S_MAX = 90.0
STOP_S_MAX = 60.0
COMMAND_S_MAX = 60.0

_LISTENING = "ledgerd listening on "
_PACKAGES = Path(__file__).resolve().parents[2]  # where `ledger` is found, installed or not


class ServerFailed(Exception):
    """The server did not start, or did not stop when it was asked to."""


class Server:
    """`url` moves with each start: the server always takes a free port. All output is kept in `folder`."""

    def __init__(
        self, store_url: str, folder: Path, deadline: Deadline, *, owner_token: str | None = None, workers: int = 1
    ) -> None:
        """Servers of one ledger share the owner's token; without one it is made."""
        self.store_url = store_url
        self.owner_token = owner_token or secrets.token_urlsafe(24)
        self.url = ""
        self._folder = folder
        self._stderr = folder / "server.err"
        self._deadline = deadline
        self._options = ["--workers", str(workers)] if workers > 1 else []
        self._process: subprocess.Popen[bytes] | None = None
        self._up = threading.Event()

    def start(self) -> None:
        """Returns once the server listens; raises ServerFailed with its last words where it does not."""
        with self._stderr.open("ab") as stderr:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "ledger.cli",
                    "serve",
                    "--port",
                    "0",
                    "--store",
                    self.store_url,
                    *self._options,
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=self._folder,
                env=self._environment(),
            )
        self._process = process
        lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=_drain, args=(process.stdout, lines), daemon=True).start()
        try:
            line = lines.get(timeout=self._deadline.limit(START_S_MAX)).decode().strip()
        except queue.Empty:
            line = ""
        if not line.startswith(_LISTENING):
            self.kill()
            raise ServerFailed(f"the server did not start; it said {line!r}\n{self.stderr_tail()}")
        self.url = line.removeprefix(_LISTENING)
        self._up.set()

    @property
    def pid(self) -> int:
        """Of the running process."""
        assert self._process is not None  # noqa: S101 — asked for while it runs
        return self._process.pid

    def wait(self) -> int:
        """Waits for an end that was not asked for here; the exit code. Raises ServerFailed where it does not come."""
        return self._end(None)

    def stop(self) -> None:
        """SIGTERM, and waits. Raises ServerFailed where it does not end in time, or not with 0."""
        code = self._end(signal.SIGTERM)
        if code != 0:
            raise ServerFailed(f"the server was asked to stop and ended with {code}\n{self.stderr_tail()}")

    def kill(self) -> None:
        """SIGKILL: nothing that the server meant to do any more is done."""
        self._end(signal.SIGKILL)

    def command(self, name: str) -> subprocess.CompletedProcess[str]:
        """Runs another subcommand of ledgerd on the store."""
        return subprocess.run(
            [sys.executable, "-m", "ledger.cli", name, "--store", self.store_url],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=self._deadline.limit(COMMAND_S_MAX),
            cwd=self._folder,
            env=self._environment(),
            check=False,
        )

    def wait_until_up(self) -> None:
        """Waits for the next start where the server is down."""
        self._up.wait(self._deadline.limit(START_S_MAX))

    def close(self) -> None:
        if self._process is not None:
            self.kill()

    def stderr_tail(self, lines: int = 40) -> str:
        if not self._stderr.exists():
            return ""
        return "\n".join(self._stderr.read_text(errors="replace").splitlines()[-lines:])

    def _end(self, how: signal.Signals | None) -> int:
        process = self._process
        if process is None:
            return 0
        self._up.clear()
        if how is not None:
            process.send_signal(how)
        try:
            code = process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            reason = how.name if how is not None else "what was done to it"
            last_words = self.stderr_tail()
            raise ServerFailed(
                f"the server did not end within {STOP_S_MAX:.0f} s of {reason}\n{last_words}"
            ) from None
        self._process = None
        return code

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LEDGERD_")}
        path = os.pathsep.join(filter(None, [str(_PACKAGES), kept.get("PYTHONPATH")]))
        return {**kept, "PYTHONPATH": path, "LEDGERD_OWNER_TOKEN": self.owner_token}


def _drain(stream: IO[bytes], lines: queue.SimpleQueue[bytes]) -> None:
    with stream:
        for line in stream:
            lines.put(line)
    lines.put(b"")
