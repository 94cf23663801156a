"""What is known of a session while it is gone through: where it works, and what it made itself and may take away."""

from __future__ import annotations

import posixpath
import re

from ledger.daemons.sweep.prefilter.shell import Command, words

MADE_MAX = 5_000
GLOBS = re.compile(r"[*?.\[\]{},]*")

_SHARED = ("tmp", "var/tmp", "private/tmp", "private/var/folders", "var/folders", "dev/shm")
_SCRATCH_ROOTS = tuple(f"/{name}/" for name in _SHARED)
_SCRATCH_VARIABLES = re.compile(r"\$\(mktemp\b|`mktemp\b|\$\{?(?:TMPDIR|TEMP|TMP|RUNNER_TEMP|tmpdir|tmp|TMP_DIR)\b")
_SCRATCH_NAMES = words(
    "tmp temp .tmp .temp scratch .scratch scratchpad .scratchpad playground worktrees .worktrees test-results"
    " test-output test_output playwright-report"
)
_GENERATED = words(
    "node_modules dist build target out .next .nuxt .turbo .parcel-cache .svelte-kit .output .vite .angular .expo"
    " __pycache__ .pytest_cache .mypy_cache .ruff_cache .tox .nox .hypothesis .eggs htmlcov coverage .coverage"
    " .nyc_output .venv venv .cache .gradle .dart_tool DerivedData .terraform .serverless .DS_Store _build"
    " .eslintcache"
)
_GENERATED_ENDS = tuple(sorted(words(".pyc .pyo .o .class .log .tmp .swp .orig .rej .egg-info .tsbuildinfo")))


class Known:
    """Of one session. `pushed`: it has pushed a branch; `commits_since`: and committed since then; `containers` are
    those that it started by name."""

    def __init__(self, cwd: str | None) -> None:
        self.cwd = cwd
        self.pushed = False
        self.commits_since = False
        self.containers: set[str] = set()
        self._made: set[str] = set()

    def place(self, word: str, folder: str | None) -> str:
        """A path as far as it can be told; one below a folder that is not known begins with `?/`."""
        if word.startswith(("~", "$", "`")):
            return word
        base = folder if folder is None or self.cwd is None else posixpath.join(self.cwd, folder)
        return posixpath.normpath(posixpath.join(base or "?", word))

    def makes(self, word: str, folder: str | None) -> None:
        if word and len(self._made) < MADE_MAX:
            self._made.add(self.place(word, folder))

    def made(self, place: str) -> bool:
        """Whether the session made it itself, or a folder that it lies in."""
        while place not in self._made:
            above = posixpath.dirname(place)
            if above in (place, ""):
                return False
            place = above
        return True

    def is_scratch(self, place: str) -> bool:
        """Whether nobody misses what lies there: a scratch folder or what a build makes again, but not the folder
        that all share, nor the one that the session works in."""
        if place == self.cwd:
            return False
        if _SCRATCH_VARIABLES.match(place) and "/.." not in place:
            return True
        for root in _SCRATCH_ROOTS:
            if place.startswith(root):
                first = place.removeprefix(root).split("/")[0]
                return GLOBS.fullmatch(first) is None
        inside = place.removeprefix(f"{self.cwd}/") if self.cwd else place
        parts = inside.split("/")
        if any(part in _GENERATED for part in parts) or parts[-1].rstrip("*").endswith(_GENERATED_ENDS):
            return True
        return not inside.startswith("/") and any(part in _SCRATCH_NAMES for part in parts)


def learn(known: Known, command: Command) -> None:
    """Takes in what a command makes: what the session made, it may take away."""
    name, given = command.name, [word for word in command.words[1:] if not word.startswith("-")]
    for sign, target in command.redirects:
        if sign.lstrip("0123456789") in (">", ">>", ">|", "&>", "&>>"):
            known.makes(target, command.folder)
    if name in ("touch", "mkdir", "tee"):
        for word in given:
            known.makes(word, command.folder)
    elif name in ("cp", "ln") and len(given) > 1:
        known.makes(given[-1], command.folder)
    elif name == "git" and "worktree" in given[:3] and "add" in given:
        for word in given[given.index("add") + 1 :]:
            known.makes(word, command.folder)
    elif name == "git" and "clone" in given and len(given) > given.index("clone") + 1:
        source = given[given.index("clone") + 1]
        targets = given[given.index("clone") + 2 :] or [posixpath.basename(source).removesuffix(".git")]
        known.makes(targets[0], command.folder)
    elif name in ("docker", "podman") and "run" in given[:2]:
        for at, word in enumerate(command.words):
            if word.startswith("--name"):
                known.containers.add(word.partition("=")[2] or "".join(command.words[at + 1 : at + 2]))


def flags(given: list[str]) -> set[str]:
    """The options among words: long ones whole and without a value, short ones letter by letter (`-fdx`)."""
    found: set[str] = set()
    for word in given:
        if word == "--":
            break
        if word.startswith("--"):
            found.add(word.partition("=")[0])
        elif word.startswith("-") and len(word) > 1:
            found |= {f"-{letter}" for letter in word[1:]}
    return found


def operands(given: list[str]) -> list[str]:
    """The words that are no options; all of those behind `--`."""
    if "--" in given:
        at = given.index("--")
        return [*(word for word in given[:at] if not word.startswith("-")), *given[at + 1 :]]
    return [word for word in given if not word.startswith("-")]
