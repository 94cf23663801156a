"""Where the agents of a loop work, what they are run by, and what they are told."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from ledger.daemons.agent import PRESETS, command_for, resolve_prompt
from ledger.daemons.loop import git
from ledger.daemons.loop.config import Setup, words_of
from ledger.daemons.loop.folders import InvalidLoop, LoopFolder
from ledger.daemons.loop.journal import Journal
from projections.loop_state import WORKTREE, Loop, Round, Verdict
from projections.loop_views import verdict_item

BRANCH_PREFIX = "loop/"
ARGUMENT_BYTES_MAX = 100_000  # of a prompt as one element; Linux takes no more than 128 KiB

_DEFAULT = "claude"


def place(folder: LoopFolder, setup: Setup, journal: Journal) -> Path:
    """The project, or its worktree, which is made where it is missing, and recorded. Raises GitFailed,
    InvalidLoop."""
    if not setup.config.blast_radius.use_worktree:
        return folder.project
    top = git.top_of(folder.project)
    if top is None:
        raise InvalidLoop(
            f"{folder.project} lies in no git repository, so there can be no worktree",
            hint="Run `git init` and commit, or set blast_radius.use_worktree to false.",
        )
    branch = BRANCH_PREFIX + folder.name
    if not (folder.worktree / ".git").exists():
        git.add_worktree(folder.project, folder.worktree, branch)
    recorded = {"branch": git.branch_of(folder.worktree) or branch, "path": str(folder.worktree)}

    def record(loop: Loop) -> list[tuple[str, dict[str, str]]]:
        known = {"branch": loop.worktree_branch, "path": loop.worktree_path}
        return [] if known == recorded else [(WORKTREE, recorded)]

    journal.add(record)
    return folder.worktree / folder.project.resolve().relative_to(top.resolve())


def command(setup: Setup, prompt: str) -> tuple[str, ...] | str:
    """The words of the agent; without any configured, those of the first known one on the path. The prompt is one
    element of them, or on standard input where it is too long for that or looks like a flag."""
    words = words_of(setup.config.harness.command, "harness.command")
    if words is not None and not (len(words) == 1 and words[0] in PRESETS):
        return words
    name = words[0] if words else next((one for one in PRESETS if shutil.which(one)), _DEFAULT)
    if prompt.startswith("-") or len(prompt.encode(errors="replace")) > ARGUMENT_BYTES_MAX:
        return name
    return (*(word for word in command_for(name) if word != "-"), "{prompt_content}")


def prompt_text(
    folder: LoopFolder, text: str, one: Round, *, role: str, cwd: Path, artifact: str, before: Verdict | None
) -> str:
    """The role's prompt with what it asks for put in; the round's task follows it where it has no place for it.
    `before` is the verdict of the round before."""
    said = {
        "loop": folder.name,
        "task": one.task,
        "tick": str(one.tick),
        "role": role,
        "cwd": str(cwd),
        "output": str(folder.output(one.tick, role)),
        "artifact": artifact,
        "verdict": json.dumps(verdict_item(before), ensure_ascii=False) if before else "There was none.",
    }
    resolved = resolve_prompt(text, said)
    return resolved if "{task}" in text else f"{resolved.rstrip()}\n\n## Task\n\n{one.task}\n"
