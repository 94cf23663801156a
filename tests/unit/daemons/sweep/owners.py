"""Files of other users, and doing without the rights of root: what only root can set up for a test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SOMEBODY = 54_321  # a user whom no machine has

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")


def give_away(folder: Path, user: int = SOMEBODY) -> None:
    """Makes the folder and all in it another user's."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, user, user, follow_symlinks=False)


def owned(folder: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """All that a reader could change of a folder and what is in it: owners, modes, times, contents."""
    told = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        about = path.stat()
        content = path.read_bytes() if path.is_file() else b""
        told[str(path)] = (about.st_uid, about.st_mode, about.st_mtime_ns, content)
    return told


@contextmanager
def lowered_rights(folder: Path, *, owner: int = SOMEBODY) -> Iterator[None]:
    """As somebody without root's rights. `folder` and all in it are the owner's; it can be reached, whatever lies
    above. Where the tests are not run by root, they have no such rights anyway."""
    if os.geteuid() != 0:
        yield
        return
    give_away(folder, owner)
    above = {path: path.stat().st_mode for path in folder.parents if path.stat().st_mode & 0o011 != 0o011}
    for path, mode in above.items():
        path.chmod(mode | 0o011)  # root's groups stay its own
    try:
        os.seteuid(SOMEBODY)
        yield
    finally:
        os.seteuid(0)
        for path, mode in above.items():
            path.chmod(mode)
