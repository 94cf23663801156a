"""What git, and gh, can lose: history, uncommitted work, branches, what a hook or a review would have caught."""

from __future__ import annotations

import re

from ledger.daemons.sweep.model import DESTROYS, DONE, REMOVES, RISKS
from ledger.daemons.sweep.prefilter.known import Known, flags, operands
from ledger.daemons.sweep.prefilter.matching import Rule
from ledger.daemons.sweep.prefilter.shell import Command, words

_FILE = re.compile(r"[^/]\.[A-Za-z]{1,5}$")
_VALUES = words("-C -c --git-dir --work-tree --namespace --exec-path")


def _rule(name: str, why: str, rank: int = DESTROYS) -> Rule:
    return Rule(name, DONE, rank, why)


PUSH_FORCE = _rule("git-push-force", "A push that replaces what others may have fetched.")
PUSH_LEASE = _rule("git-push-lease", "A push that replaces history, if nobody else has pushed.", RISKS)
PUSH_DELETE = _rule("git-push-delete", "A push that deletes a branch or tag of the remote.")
RESET_HARD = _rule("git-reset-hard", "Uncommitted work is thrown away, and commits may fall off the branch.")
CLEAN = _rule("git-clean", "Files that git does not track are deleted for good.")
DISCARD_ALL = _rule("git-discard-all", "All uncommitted changes are thrown away.")
DISCARD = _rule("git-discard", "Uncommitted changes of some files are thrown away.", REMOVES)
FILTER = _rule("git-filter", "All history is rewritten.")
REBASE_PUSHED = _rule("git-rebase-pushed", "History is rewritten after it was pushed.", RISKS)
AMEND_PUSHED = _rule("git-amend-pushed", "A commit is replaced after something was pushed.", RISKS)
BRANCH_DELETE = _rule("git-branch-delete", "A branch is deleted though it may not be merged.")
STASH_DROP = _rule("git-stash-drop", "Stashed work is deleted.")
REFS = _rule("git-refs", "Refs, or what would recover them, are deleted.")
SKIP_HOOKS = _rule("git-skip-hooks", "The checks that a hook makes are passed over.", RISKS)
ONE_SIDE = _rule("git-one-side", "A merge throws the other side's changes away.", RISKS)
SUBMODULE = _rule("git-submodule-drop", "A submodule is taken away with what it holds.", REMOVES)
GH_DELETE = _rule("gh-delete", "Something on the forge is deleted.")
GH_ADMIN = _rule("gh-merge-admin", "A merge passes over the branch's protection.", RISKS)


def rule_of(command: Command, known: Known) -> Rule | None:
    if command.name == "gh":
        return _gh(command.words[1:])
    given = _behind_options(command.words[1:])
    if not given:
        return None
    decide = _SUBCOMMANDS.get(given[0])
    return None if decide is None else decide(given[1:], flags(given[1:]), known)


def _behind_options(given: list[str]) -> list[str]:
    at = 0
    while at < len(given) and given[at].startswith("-"):
        at += 2 if given[at] in _VALUES else 1
    return given[at:]


def _push(given: list[str], on: set[str], known: Known) -> Rule | None:
    if on & {"-n"}:
        return None
    refs = operands(given)[1:]
    deletes = bool(on & {"-d", "--delete", "--prune"}) or any(ref.startswith(":") and len(ref) > 1 for ref in refs)
    if deletes:
        return PUSH_DELETE
    known.pushed, known.commits_since = True, False
    if on & {"--force-with-lease"}:
        return PUSH_LEASE
    if on & {"-f", "--force", "--mirror"} or any(ref.startswith("+") for ref in refs):
        return PUSH_FORCE
    return SKIP_HOOKS if "--no-verify" in on else None


def _reset(given: list[str], on: set[str], known: Known) -> Rule | None:
    return RESET_HARD if "--hard" in on else None


def _clean(given: list[str], on: set[str], known: Known) -> Rule | None:
    return CLEAN if on & {"-f", "--force"} and not on & {"-n", "-i"} else None


def _checkout(given: list[str], on: set[str], known: Known) -> Rule | None:
    if on & {"-b", "-B", "--orphan", "-p", "--patch"}:
        return None
    if on & {"--ours", "--theirs"}:
        return ONE_SIDE
    paths = given[given.index("--") + 1 :] if "--" in given else []
    if _is_whole(paths or [word for word in operands(given) if word in (".", ":/", "./")]):
        return DISCARD_ALL
    if on & {"-f", "--force"}:
        return DISCARD_ALL
    return DISCARD if paths or any(_FILE.search(word) for word in operands(given)) else None


def _restore(given: list[str], on: set[str], known: Known) -> Rule | None:
    if on & {"--staged", "-S"} and not on & {"--worktree", "-W"}:
        return None
    return DISCARD_ALL if _is_whole(operands(given)) else DISCARD


def _is_whole(paths: list[str]) -> bool:
    return any(path in (".", "./", ":/", "*", "/") for path in paths)


def _branch(given: list[str], on: set[str], known: Known) -> Rule | None:
    forced = "-D" in on or (on & {"-d", "--delete"} and on & {"-f", "--force"})
    return BRANCH_DELETE if forced else None


def _stash(given: list[str], on: set[str], known: Known) -> Rule | None:
    return STASH_DROP if given[:1] in (["drop"], ["clear"]) else None


def _rebase(given: list[str], on: set[str], known: Known) -> Rule | None:
    upkeep = on & {"--abort", "--continue", "--skip", "--quit", "--edit-todo"}
    return REBASE_PUSHED if known.pushed and not upkeep else None


def _commit(given: list[str], on: set[str], known: Known) -> Rule | None:
    if "--no-verify" in on or "-n" in given:
        return SKIP_HOOKS
    if "--amend" in on:
        return AMEND_PUSHED if known.pushed and not known.commits_since else None
    known.commits_since = True
    return None


def _merge(given: list[str], on: set[str], known: Known) -> Rule | None:
    sides = {"ours", "theirs", "-Xours", "-Xtheirs", "--strategy=ours", "--strategy-option=theirs"}
    return ONE_SIDE if sides & set(given) else None


def _filter(given: list[str], on: set[str], known: Known) -> Rule | None:
    return FILTER


def _refs(given: list[str], on: set[str], known: Known) -> Rule | None:
    return REFS if on & {"-d", "--delete"} or given[:1] in (["expire"], ["delete"]) else None


def _gc(given: list[str], on: set[str], known: Known) -> Rule | None:
    return REFS if any(word.startswith("--prune=") for word in given) else None


def _submodule(given: list[str], on: set[str], known: Known) -> Rule | None:
    return SUBMODULE if given[:1] == ["deinit"] and on & {"-f", "--force", "--all"} else None


_SUBCOMMANDS = {
    "push": _push,
    "reset": _reset,
    "clean": _clean,
    "checkout": _checkout,
    "switch": lambda given, on, known: DISCARD_ALL if on & {"-f", "--force", "--discard-changes"} else None,
    "restore": _restore,
    "branch": _branch,
    "stash": _stash,
    "rebase": _rebase,
    "commit": _commit,
    "merge": _merge,
    "pull": _merge,
    "filter-branch": _filter,
    "filter-repo": _filter,
    "tag": _refs,
    "update-ref": _refs,
    "reflog": _refs,
    "gc": _gc,
    "prune": lambda given, on, known: REFS,
    "submodule": _submodule,
}


def _gh(given: list[str]) -> Rule | None:
    if given[1:2] == ["delete"] or (given[:1] == ["api"] and "DELETE" in given):
        return GH_DELETE
    return GH_ADMIN if given[:2] == ["pr", "merge"] and "--admin" in given else None
