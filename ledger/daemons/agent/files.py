"""Files that lie where agents can write: whatever lies there already must neither hold us up nor lead us astray."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path


def read_regular(path: Path, bytes_max: int) -> bytes:
    """The first `bytes_max` bytes of a regular file; a pipe does not hold us up. Raises OSError, and ValueError, in
    words for people, for what is no regular file."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("is no regular file")
        return file.read(bytes_max)


def write_anew(path: Path, data: bytes) -> None:
    """Replaces the file, link or pipe, or makes it: whoever reads sees the old file or the new one, also where
    several write at once. Raises OSError."""
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(unfinished, flags, 0o644), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise
