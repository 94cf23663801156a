"""`ledgerd` as a shell runs it, with an outbox of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.live.serving import OWNER_TOKEN, ROOT

RUN_S_MAX = 90.0
LATER = "to be sent later"


class Shell:
    """Runs words as `ledgerd` does; `folder` holds the outbox, and a `ledgerd` for the PATH of what is run inside."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.outbox = folder / "outbox.db"
        bin = folder / "bin"
        bin.mkdir(exist_ok=True)
        script = bin / "ledgerd"
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ledger.cli "$@"\n')
        script.chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LEDGERD_")}
        self.environment = {
            **kept,
            "PATH": f"{bin}{os.pathsep}{kept['PATH']}",
            "PYTHONPATH": str(ROOT),
            "LEDGERD_URL": url,
            "LEDGERD_TOKEN": OWNER_TOKEN,
            "LEDGERD_OUTBOX": str(self.outbox),
        }

    def ledgerd(
        self, *words: str, input: str | bytes = b"", environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command(words),
            input=input.encode() if isinstance(input, str) else input,
            env={**self.environment, **(environment or {})},
            cwd=self.folder,
            capture_output=True,
            timeout=RUN_S_MAX,
            check=False,
        )
        output, errors = (said.decode(errors="replace") for said in (done.stdout, done.stderr))
        if LATER in errors and environment is None:
            errors = "".join(line for line in errors.splitlines(keepends=True) if LATER not in line)
            self.drain()
        return subprocess.CompletedProcess(done.args, done.returncode, output, errors)

    def drain(self) -> None:
        """Sends what a command left in the outbox: it tries for a second, which is little on a busy machine."""
        drained = self.ledgerd("outbox", "drain", "--wait", f"{RUN_S_MAX / 2:.0f}")
        assert drained.returncode == 0, drained.stderr

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command(words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment,
            cwd=self.folder,
        )


def command(words: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "ledger.cli", *words]
