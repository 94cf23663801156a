"""What went wrong in hooks, which may not say so themselves: a short file beside the outbox. Loads nothing."""

from __future__ import annotations

import os
import time

BYTES_MAX = 64 * 1024
_WHY_CHARS_MAX = 300


def path_of(outbox: str) -> str:
    return outbox + ".hooks.log"


def note(outbox: str, why: str) -> None:
    """Notes one trouble. Where the file is full the oldest half goes. Raises OSError."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = f"{at} {' '.join(why.split())[:_WHY_CHARS_MAX]}\n".encode(errors="replace")
    file = os.open(path_of(outbox), os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        size = os.fstat(file).st_size
        if size + len(line) > BYTES_MAX:
            newest = os.pread(file, size, size // 2).partition(b"\n")[2]
            os.ftruncate(file, 0)
            os.write(file, newest)
        os.write(file, line)
    finally:
        os.close(file)


def read(outbox: str) -> list[str]:
    """The troubles noted, the oldest first: when (RFC 3339), a space, and why."""
    try:
        with open(path_of(outbox), encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return []
