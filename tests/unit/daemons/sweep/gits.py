"""Real repositories for the tests of the sweep, untouched by the settings of whoever runs them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_AUTHOR_NAME": "Somebody",
    "GIT_AUTHOR_EMAIL": "somebody@example.org",
    "GIT_COMMITTER_NAME": "Somebody",
    "GIT_COMMITTER_EMAIL": "somebody@example.org",
}


def own_world(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    for name, value in {**ENVIRONMENT, "HOME": str(home)}.items():
        monkeypatch.setenv(name, value)


def git(folder: Path, *words: str) -> str:
    environment = {**os.environ, **ENVIRONMENT}
    done = subprocess.run(
        ["git", *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=20, check=True
    )
    return done.stdout.strip()


def repository(folder: Path) -> Path:
    """A repository on branch main with one commit."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "README").write_text("first\n")
    git(folder, "add", "README")
    git(folder, "commit", "--quiet", "-m", "first")
    return folder


def bare(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--bare", "--initial-branch=main")
    return folder


def hook(folder: Path, name: str, script: str) -> None:
    path = folder / ".git" / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def files_of(folder: Path, commit: str = "HEAD") -> list[str]:
    return git(folder, "show", "--name-only", "--format=", commit).split()
