"""What git says of a project: where it stands, and what was changed since.

An agent can write the repository's configuration, so no hook, file system monitor or external diff of it is run.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Protocol

DIFF_CHARS_MAX = 60_000
NEW_FILE_CHARS_MAX = 8_000
NEW_FILES_MAX = 50
TIME_S_MAX = 60.0

_UNTOUCHED = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false")


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
        changed = _git(folder, "diff", "--no-ext-diff", "--no-textconv", "--stat", "--patch", since, "--")
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
    return text if len(text) <= chars_max else f"{text[:chars_max]}\n… ({len(text) - chars_max} more characters)"


def _git(folder: Path, *words: str) -> bytes | None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(  # noqa: S603 — the words are ours
            ["git", *_UNTOUCHED, *words],  # noqa: S607 — whichever git the person uses
            cwd=folder,
            env={**kept, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIME_S_MAX,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
