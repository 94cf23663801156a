"""What the repository is like at one moment, so that what a round touched can be named afterwards.

Where there is git, it says which files there are (those it ignores do not count), and commits made meanwhile count
with every file they touched, even if it was put back. Elsewhere all files count. Contents are read by us, never
through git's filters.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ledger.daemons.loop import git
from ledger.daemons.loop.folders import HOME, InvalidLoop

FILES_MAX = 100_000
FILE_BYTES_MAX = 64 * 2**20  # a larger file is known by its size and times
BYTES_MAX = 4 * 2**30

_ABSENT = "absent"


class Snapshot(msgspec.Struct, frozen=True):
    """`files` are path → what it holds, in a form that only serves to compare; `commit` is empty without git."""

    files: dict[str, str]
    commit: str = ""
    in_git: bool = False

    def text(self) -> str:
        return json.dumps(msgspec.structs.asdict(self), sort_keys=True)


def read_snapshot(text: str) -> Snapshot:
    """What `Snapshot.text` gave. Raises ValueError, TypeError."""
    return Snapshot(**json.loads(text))


def take(folder: Path) -> Snapshot:
    """Raises InvalidLoop where there is too much to look at, and GitFailed."""
    if git.top_of(folder) is None:
        return Snapshot(_contents(folder, _walked(folder)))
    files = _contents(folder, (name for name in _listed(folder) if not _is_ours(name)))
    for path in git.config_files(folder):
        files[f".git/{path.parent.name}/{path.name}" if path.name != "config" else ".git/config"] = _content(path)[0]
    return Snapshot(files, git.head(folder), True)


def touched(folder: Path, before: Snapshot, after: Snapshot) -> list[str]:
    """The files that differ, and those of commits made in between; both names of one that was moved."""
    names = {
        name
        for name in before.files.keys() | after.files.keys()
        if before.files.get(name, _ABSENT) != after.files.get(name, _ABSENT)
    }
    if after.in_git and before.in_git:
        names.update(name for name in git.committed_since(folder, before.commit) if not _is_ours(name))
    return sorted(names)


def content_of(path: Path) -> str:
    """What a file holds, in a form that only serves to compare; `absent` where there is none."""
    return _content(path)[0]


def _is_ours(name: str) -> bool:
    return name == HOME or name.startswith(f"{HOME}/")


def _listed(folder: Path) -> Iterator[str]:
    """What git lists, and with it what it lists of the repositories inside: it names no more of those than their
    folder."""
    inside = [""]
    while inside:
        place = inside.pop()
        for name in git.listed(folder / place):
            path = os.path.normpath(os.path.join(place, name))
            is_folder = not (folder / path).is_symlink() and (folder / path).is_dir()
            if is_folder and (folder / path / ".git").exists() and not _is_ours(path):
                inside.append(path)
            yield path


def _walked(folder: Path) -> Iterator[str]:
    for at, folders, names in os.walk(folder):
        if Path(at) == folder:
            folders[:] = [name for name in folders if name not in (HOME, ".git")]
        links = [name for name in folders if (Path(at) / name).is_symlink()]
        for name in (*names, *links):
            yield os.path.relpath(os.path.join(at, name), folder)


def _contents(folder: Path, names: Iterator[str]) -> dict[str, str]:
    files: dict[str, str] = {}
    total = 0
    for name in names:
        files[name], size = _content(folder / name)
        total += size
        if len(files) > FILES_MAX or total > BYTES_MAX:
            raise InvalidLoop(
                f"{folder} holds more than can be watched: {len(files)} files, {total >> 20} MiB read",
                hint="Let git ignore what is made anew (`git init` where there is no repository), or leave file_scope"
                " empty and no_progress false.",
            )
    return files


def _content(path: Path) -> tuple[str, int]:
    """What it holds, and how many bytes were read for that."""
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            return f"link {os.readlink(path)}", 0
        if not stat.S_ISREG(status.st_mode):
            return f"mode {status.st_mode:o}", 0
        mode = "x" if status.st_mode & 0o111 else "-"
        if status.st_size > FILE_BYTES_MAX:
            return f"{mode} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}", 0
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            return f"{mode} {hashlib.file_digest(file, 'sha256').hexdigest()}", status.st_size
    except (FileNotFoundError, NotADirectoryError):
        return _ABSENT, 0
    except OSError as error:
        return f"unreadable {error.errno}", 0
