"""What git says of a project: where it stands, and what was changed since.

Git is asked warily: no external diff or filter of the repository is run either, and nothing is fetched.
"""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path
from typing import Protocol

from ledger.daemons.wary_git import git_command, git_environment

DIFF_CHARS_MAX = 60_000
NEW_FILE_CHARS_MAX = 8_000
NEW_FILES_MAX = 50
OUTPUT_BYTES_MAX = 2**20  # of any answer: a repository may hold more than there is memory
TIME_S_MAX = 60.0

# A missing object would be fetched, by a program of the configuration's choice
_NOTHING_FETCHED = {"GIT_ALLOW_PROTOCOL": "none"}
_DIFF = (
    "diff",
    "--no-ext-diff",
    "--no-textconv",
    "--ignore-submodules=dirty",
    "--submodule=short",
    "--stat",
    "--patch",
)


class Repositories(Protocol):
    def head(self, folder: Path) -> str | None:
        """The commit that is checked out, None where there is none."""

    def diff(self, folder: Path, since: str) -> str:
        """What was changed since that commit, committed or not, as a person reads it; bounded."""


class Git:
    """The projects' own repositories. Where git cannot answer, the diff says so: a review goes on without it."""

    def head(self, folder: Path) -> str | None:
        done = _git(folder, "rev-parse", "--verify", "--quiet", "HEAD")
        return None if done is None else done.decode(errors="replace").strip() or None

    def diff(self, folder: Path, since: str) -> str:
        changed = _git(folder, *_DIFF, since, "--", **_without_filters(folder))
        if changed is None:
            return "(git could not say what was changed)"
        text = changed.decode(errors="replace")
        new = _git(folder, "ls-files", "-z", "--others", "--exclude-standard") or b""
        names = [os.fsdecode(name) for name in new.split(b"\0") if name]
        parts = [text, *(_new_file(folder, name) for name in names[:NEW_FILES_MAX])]
        if len(names) > NEW_FILES_MAX:
            parts.append(f"(and {len(names) - NEW_FILES_MAX} more new files)")
        return _bounded("\n".join(part for part in parts if part), DIFF_CHARS_MAX)


def _new_file(folder: Path, name: str) -> str:
    path = folder / name
    shown = name.encode(errors="replace").decode()
    try:
        if path.is_symlink() or not path.is_file():
            return f"new: {shown}"
        with path.open("rb") as file:
            data = file.read(4 * NEW_FILE_CHARS_MAX)
    except OSError:
        return f"new: {shown} (cannot be read)"
    if b"\0" in data:
        return f"new: {shown} (binary)"
    return f"new: {shown}\n{_bounded(data.decode(errors='replace'), NEW_FILE_CHARS_MAX)}"


def _bounded(text: str, chars_max: int) -> str:
    return text if len(text) <= chars_max else f"{text[:chars_max]}\n… (the rest is left out)"


def _without_filters(folder: Path) -> dict[str, str]:
    """Variables that take every filter out of the repository's configuration: a diff would pass contents through it.
    As variables, since a name may hold what `-c` would split it at."""
    found = _git(folder, "config", "--null", "--name-only", "--get-regexp", r"^filter\.") or b""
    names = [os.fsdecode(name) for name in dict.fromkeys(found.split(b"\0")) if name]
    variables = {"GIT_CONFIG_COUNT": str(len(names))}
    for number, name in enumerate(names):
        off = "false" if name.endswith(".required") else ""
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": off}
    return variables


def _git(folder: Path, *words: str, **variables: str) -> bytes | None:
    """The first OUTPUT_BYTES_MAX of what it printed; None where it failed."""
    try:
        process = subprocess.Popen(  # noqa: S603 — the words are ours
            git_command(*words),
            cwd=folder,
            env=git_environment(**_NOTHING_FETCHED, **variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except (OSError, ValueError):  # ValueError: a NUL in a name
        return None
    late = threading.Timer(TIME_S_MAX, process.kill)
    late.start()
    try:
        with process:
            printed = b"" if process.stdout is None else process.stdout.read(OUTPUT_BYTES_MAX)
            is_cut = len(printed) == OUTPUT_BYTES_MAX
            if is_cut:
                process.kill()
    finally:
        late.cancel()
    return printed if is_cut or process.returncode == 0 else None
