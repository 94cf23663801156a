"""What the verifier goes by, held against what it was before any agent was started.

That is loop.json, the verifier's prompt, the files that the commands of harness, gate and probe name, and what known
agents read as instructions of the folder that they work in. The prompt's text is read once, before the round; this
finds out that somebody tried.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ledger.daemons.loop.config import Setup, words_of
from ledger.daemons.loop.folders import LoopFolder
from ledger.daemons.loop.snapshots import content_of

INSTRUCTIONS = (
    "AGENTS.md",
    "AGENTS.override.md",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "GEMINI.md",
    ".mcp.json",
    ".claude/CLAUDE.md",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    "opencode.json",
    "opencode.jsonc",
)


def inputs_of(folder: LoopFolder, setup: Setup, cwd: Path) -> dict[str, str]:
    """name → what it holds. `cwd` is where the agents work: the project, or its worktree."""
    config = setup.config
    paths = [folder.config]
    if config.roles.verify is not None:
        paths.append((folder.home / config.roles.verify.prompt).resolve())
    paths += _named(words_of(config.harness.command, "harness.command") or (), cwd, folder)
    for asked in (config.gate, config.context_probe):
        paths += _named(words_of(asked.command, "command") or (), folder.project, folder)
    found = {_shown(path, folder.project): content_of(path) for path in paths}
    found |= {_shown(cwd / name, folder.project): content_of(cwd / name) for name in INSTRUCTIONS}
    return found


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))


def _named(words: Sequence[str], cwd: Path, folder: LoopFolder) -> Iterator[Path]:
    """The files inside the project that a command's words name; the program itself wherever it is found there."""
    inside = folder.project.resolve()
    program = shutil.which(words[0]) if words and "/" not in words[0] else None
    for word in (*words, program or ""):
        path = cwd / word
        try:
            is_file = bool(word) and path.is_file()
        except (OSError, ValueError):  # a word that is no path at all
            continue
        if is_file and path.resolve().is_relative_to(inside):
            yield Path(os.path.abspath(path))
            yield path.resolve()  # what a link leads to


def _shown(path: Path, project: Path) -> str:
    return str(path.relative_to(project)) if path.is_relative_to(project) else str(path)
