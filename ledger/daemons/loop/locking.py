"""One tick of a loop at a time: a lock that the kernel frees when its holder ends, however it ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ledger.errors import StorageError


@contextmanager
def tick_lock(path: Path) -> Iterator[bool]:
    """Whether the lock was taken; it is held while the block runs. Raises StorageError."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}", hint="Make the loop's folder writable.") from error
    try:
        yield _take(descriptor, path)
    finally:
        os.close(descriptor)


def _take(descriptor: int, path: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())  # not one that was removed meanwhile
    except OSError:
        return False
