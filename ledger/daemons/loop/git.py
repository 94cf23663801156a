"""What the runner asks of git: warily, and never so that what is looked at passes through a filter."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ledger.daemons.wary_git import git_command, git_environment
from ledger.errors import InvalidRequest

TIME_S_MAX = 120.0


class GitFailed(InvalidRequest):
    code = "git_failed"
    hint = "Run the same command in that folder to see what is wrong with it."


def git(cwd: Path, *words: str) -> bytes:
    """What the command printed. Raises GitFailed."""
    try:
        done = subprocess.run(  # noqa: S603 — the words are ours
            git_command(*words),
            cwd=cwd,
            env=git_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIME_S_MAX,
            check=False,
        )
    except FileNotFoundError as error:
        raise GitFailed("git is not on the path", hint="Install git, or leave file_scope and worktrees.") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitFailed(f"git {words[0]} in {cwd}: {error}") from error
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip().splitlines()
        raise GitFailed(f"git {words[0]} in {cwd} failed: {why[-1] if why else done.returncode}")
    return done.stdout


def top_of(folder: Path) -> Path | None:
    """The repository's top folder; None where the folder lies in none. Raises GitFailed where there is one that git
    will not read."""
    if not any((parent / ".git").exists() for parent in (folder, *folder.parents)):
        return None
    return Path(os.fsdecode(git(folder, "rev-parse", "--show-toplevel").removesuffix(b"\n")))


def head(folder: Path) -> str:
    """The commit that is checked out; empty before the first one. Raises GitFailed."""
    try:
        return git(folder, "rev-parse", "--verify", "--quiet", "HEAD").decode().strip()
    except GitFailed:
        if git(folder, "rev-parse", "--git-dir"):
            return ""
        raise


def listed(folder: Path) -> list[str]:
    """All files below the folder that git knows or would take in, relative to it."""
    out = git(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return sorted(set(_names(out)))


def committed_since(folder: Path, commit: str) -> list[str]:
    """The files that any commit touched since then, relative to the folder; those outside of it begin with `../`.
    All files where that commit is none of the present one's ancestors' repository any more."""
    now = head(folder)
    if now == commit or not now:
        return []
    span = f"{commit}..{now}" if commit else now
    words = ("log", "-z", "--format=", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "-m", span)
    top = top_of(folder) or folder
    below = os.path.relpath(folder.resolve(), top.resolve())
    names = {name.removeprefix("\n") for name in _names(git(folder, *words))}
    return sorted(os.path.relpath(name, below) for name in names if name)


def config_files(folder: Path) -> list[Path]:
    """What makes git do something else, or see something else: its configuration, hooks and excludes."""
    common = Path(os.fsdecode(git(folder, "rev-parse", "--git-common-dir").removesuffix(b"\n")))
    common = common if common.is_absolute() else folder / common
    found = [common / "config", common / "info" / "exclude", common / "info" / "attributes"]
    hooks = common / "hooks"
    return [*found, *(sorted(hooks.iterdir()) if hooks.is_dir() else [])]


def add_worktree(project: Path, path: Path, branch: str) -> None:
    """Makes a worktree on the branch, and the branch where it is not there. Raises GitFailed."""
    git(project, "worktree", "prune")
    exists = git(project, "for-each-ref", "--format=%(refname)", f"refs/heads/{branch}").strip()
    new: Sequence[str] = () if exists else ("-b", branch)
    git(project, "worktree", "add", "--quiet", *new, str(path), *((branch,) if exists else ()))


def branch_of(folder: Path) -> str:
    """The branch that is checked out; empty where none is."""
    return git(folder, "branch", "--show-current").decode(errors="replace").strip()


def _names(out: bytes) -> list[str]:
    return [os.fsdecode(name) for name in out.split(b"\0") if name]
