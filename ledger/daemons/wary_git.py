"""How git is asked about a repository that an agent may have configured: no hook, file system monitor or signature
program of it is run, and git is given neither the variables that point it elsewhere nor ours."""

from __future__ import annotations

import os

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "log.showSignature=false",  # which would run a program
    "log.diffMerges=separate",  # so that `-m` tells what it should
)
_ALONE = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


def git_command(*words: str) -> list[str]:
    """The command and its words; whichever git the person uses."""
    return ["git", *(word for setting in _SETTINGS for word in ("-c", setting)), *words]


def git_environment(**variables: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "LEDGERD_"))}
    return {**kept, **_ALONE, **variables}
