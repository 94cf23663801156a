"""One run at a time: a lock that the kernel frees when its holder ends, however it ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ledger.daemons.sweep.guard import WriteGuard
from ledger.errors import Conflict


class SweepLocked(Conflict):
    """Another run holds the lock: exit code 3."""

    code = "sweep_locked"
    hint = "Nothing was done. It frees its lock when it ends; the next run goes on from there."


@contextmanager
def locked(path: Path, guard: WriteGuard) -> Iterator[None]:
    """Holds the lock at `path`. Raises SweepLocked, WriteRefused, NotWritten."""
    opened = guard.open_file(path)
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SweepLocked(f"another run holds {path}") from error
        yield
    finally:
        os.close(opened)
