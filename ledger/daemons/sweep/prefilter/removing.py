"""The removal of real paths: not of scratch, not of what a build makes again, not of what the session made itself."""

from __future__ import annotations

import posixpath
import re

from ledger.daemons.sweep.model import DESTROYS, DONE, REMOVES, RISKS
from ledger.daemons.sweep.prefilter.known import GLOBS, Known, flags, operands
from ledger.daemons.sweep.prefilter.matching import Rule
from ledger.daemons.sweep.prefilter.shell import Command, words
from ledger.daemons.sweep.prefilter.wrapping import pattern_of_find

REMOVE_TREE = Rule("remove-tree", DONE, REMOVES, "A folder is deleted with all that it holds.")
REMOVE_FILE = Rule("remove-file", DONE, REMOVES, "Files are deleted that the session did not make.")
REMOVE_WIDE = Rule("remove-wide", DONE, DESTROYS, "What is deleted reaches as far as a root, a home or a whole tree.")
REMOVE_DATA = Rule("remove-data", DONE, DESTROYS, "A database, a repository or a backup is deleted as a file.")
REMOVE_UNKNOWN = Rule("remove-unknown", DONE, REMOVES, "What is deleted depends on a variable that may be empty.")
REMOVE_SYNC = Rule("remove-sync", DONE, REMOVES, "A copy deletes at its target what the source does not have.")
EMPTY_FILE = Rule("empty-file", DONE, REMOVES, "A file is emptied in place.")
SHRED = Rule("shred", DONE, DESTROYS, "Files are made unrecoverable.")
OPEN_TREE = Rule("open-tree", DONE, RISKS, "Rights or owners are changed throughout a tree.")
CODE_REMOVES = Rule("code-removes", DONE, REMOVES, "A script given on the command line deletes paths.")

TARGETS_MAX = 500  # of one command that are looked at

_DATA_ENDS = (".db", ".sqlite", ".sqlite3", ".sql", ".dump", ".bak", ".backup", ".mdb", ".rdb", ".pem", ".key")
_DATA_NAMES = words(".git .env .ssh .aws .gnupg .kube backups backup pgdata")
_SHELL_ENDS = ("-wal", "-shm", "-journal", ".tar.gz", ".tgz")
_CODE = re.compile(
    r"(?:shutil\.rmtree|os\.(?:remove|unlink|removedirs)|fs\.(?:rm|unlink|rmdir)(?:Sync)?|fs\.promises\.rm|rimraf"
    r"|FileUtils\.rm_rf)\s{0,3}\(\s{0,3}[rf]?[\"']([^\"'\n]{1,300})[\"']"
)
_PRINT_NOTHING = (["cat", "/dev/null"], ["echo"], ["echo", "-n"], ["echo", ""])
_INTERPRETERS = ("python", "node", "ruby", "perl", "deno", "bun", "tsx")


def rule_of(command: Command, known: Known) -> Rule | None:
    name, given = command.name, command.words[1:]
    if name in ("rm", "unlink", "rimraf", "trash", "srm"):
        on = flags(given)
        return _removal(
            operands(given), command, known, tree=name == "rimraf" or bool(on & {"-r", "-R", "--recursive"})
        )
    if name == "find":
        places = [word for word in given if not word.startswith(("-", "!", "("))][:1] or ["."]
        found = [pattern_of_find(place, given) for place in places]
        return _removal(found, command, known, tree=found == places) if "-delete" in given else None
    if name == "rsync" and any(word.startswith("--del") for word in given):
        target = known.place((operands(given) or ["."])[-1], command.folder)
        return None if _is_harmless(target, known) else REMOVE_SYNC
    if name == "mv" and given[-1:] == ["/dev/null"]:
        return _removal(operands(given)[:-1], command, known, tree=True)
    if name == "shred":
        return _unless_harmless(SHRED, operands(given), command, known)
    if name == "truncate":
        return _unless_harmless(EMPTY_FILE, [word for word in operands(given) if word != "0"], command, known)
    if name in ("chmod", "chown", "chgrp") and flags(given) & {"-R", "--recursive"}:
        return _unless_harmless(OPEN_TREE, operands(given)[1:], command, known)
    if name.startswith(_INTERPRETERS) and (found := _CODE.findall("\n".join([*given, command.stdin]))):
        return _unless_harmless(CODE_REMOVES, found, command, known)
    if name == "cp" and given[:1] == ["/dev/null"]:
        return _unless_harmless(EMPTY_FILE, given[1:], command, known)
    if name in ("", ":", "true") or [name, *given] in _PRINT_NOTHING:
        emptied = [target for sign, target in command.redirects if sign.lstrip("0123456789") in (">", ">|", "&>")]
        return _unless_harmless(EMPTY_FILE, emptied, command, known)
    return None


def _removal(targets: list[str], command: Command, known: Known, *, tree: bool) -> Rule | None:
    """The worst that is said of any of the targets."""
    found = [
        rule for target in targets[:TARGETS_MAX] if (rule := _of_target(target, command, known, tree)) is not None
    ]
    return min(found, key=lambda rule: rule.rank, default=None)


def _of_target(target: str, command: Command, known: Known, tree: bool) -> Rule | None:
    place = known.place(target, command.folder)
    if _is_harmless(place, known):
        return None
    parts = [part for part in place.split("/") if part]
    if "$" in place or "`" in place:
        return REMOVE_UNKNOWN if tree or place.startswith("$") else REMOVE_FILE
    if tree and _is_wide(place, parts, known):
        return REMOVE_WIDE
    base = parts[-1] if parts else ""
    if base in _DATA_NAMES or base.endswith((*_DATA_ENDS, *_SHELL_ENDS)):
        return REMOVE_DATA
    return REMOVE_TREE if tree else REMOVE_FILE


def _is_wide(place: str, parts: list[str], known: Known) -> bool:
    """A root, a home, the folder of the work or one above it; also as `…/*`."""
    whole = [part for part in parts if GLOBS.fullmatch(part) is None]
    if place.startswith("~"):
        return len(whole) < 2
    if place.startswith("/"):
        bare = "/" + "/".join(whole)
        inside = known.cwd is not None and posixpath.join(known.cwd, "x").startswith(bare.rstrip("/") + "/")
        return len(whole) < (3 if whole[:1] in (["home"], ["Users"]) else 2) or inside
    return not whole or ".." in parts


def _is_harmless(place: str, known: Known) -> bool:
    return place in ("/dev/null", "/dev/stdout", "/dev/stderr") or known.is_scratch(place) or known.made(place)


def _unless_harmless(rule: Rule, targets: list[str], command: Command, known: Known) -> Rule | None:
    places = [known.place(target, command.folder) for target in targets[:TARGETS_MAX]]
    return rule if any(not _is_harmless(place, known) for place in places) else None
