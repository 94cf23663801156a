"""What stands behind a wrapper: `sudo -u x`, `env A=b`, `timeout 5`, `xargs`, `bash -c "…"`, `ssh host …`,
`find -exec`, a document for a shell. Gives the commands that are really run."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

import msgspec

from ledger.daemons.sweep.prefilter.shell import Command, flow, parsed, words

DEPTH_MAX = 4
UNKNOWN = "$…"  # arguments that come from elsewhere

# Of each: the options that take a value, and how many words stand before the command
_WRAPPERS: dict[str, tuple[frozenset[str], int]] = {
    "sudo": (words("-u -g -h -p -C -D -R -T -U -r -t --user --group --chdir"), 0),
    "doas": (words("-u -C"), 0),
    "env": (words("-u -C --unset --chdir"), 0),
    "nohup": (words(), 0),
    "setsid": (words(), 0),
    "exec": (words("-a"), 0),
    "command": (words(), 0),
    "builtin": (words(), 0),
    "time": (words("-f -o"), 0),
    "timeout": (words("-k -s --kill-after --signal"), 1),
    "gtimeout": (words("-k -s"), 1),
    "nice": (words("-n"), 0),
    "ionice": (words("-c -n -p"), 0),
    "stdbuf": (words("-i -o -e"), 0),
    "unbuffer": (words(), 0),
    "caffeinate": (words("-t -w"), 0),
    "flock": (words("-w -E"), 1),
    "npx": (words("-p --package"), 0),
    "bunx": (words(), 0),
    "uvx": (words("--from --with -p --python"), 0),
}
_DETACHING = words("nohup setsid")
_RUNNERS = {  # NAME WORD runs the rest
    "uv": ("run",),
    "poetry": ("run",),
    "pipenv": ("run",),
    "hatch": ("run",),
    "rye": ("run",),
    "bundle": ("exec",),
    "pnpm": ("exec", "dlx"),
    "conda": ("run",),
}
_RUNNER_VALUES = words("-n --name --with --extra --group --python -p --project --directory --env-file")
_SHELLS = words("sh bash zsh dash ksh fish ash")
_XARGS_VALUES = words("-I -n -P -L -d -E -s -a --max-args --max-procs --delimiter")
_SSH_VALUES = words("-i -p -o -l -F -J -L -R -D -b -c -E -e -m -O -Q -S -W -w")
_EXEC_VALUES = words("-e -u -w --env --user --workdir --env-file -n --namespace -c --container --index")
_CONTAINERS = words("docker podman nerdctl docker-compose podman-compose kubectl oc")


def unwrapped(command: Command, depth: int = 0) -> Iterator[Command]:
    """The commands that `command` runs: itself, if it is no wrapper."""
    left, detached = command.words, command.background
    while left:
        name = posixpath.basename(left[0])
        detached = detached or name in _DETACHING
        if name in _WRAPPERS:
            values, before = _WRAPPERS[name]
            left = _behind(left[1:], values)[before:]
            while name in ("env", "sudo") and left and _is_assignment(left[0]):
                left = left[1:]
        elif name in _RUNNERS and len(left) > 2 and left[1] in _RUNNERS[name]:
            left = _behind(left[2:], _RUNNER_VALUES)
        elif name == "xargs" or name == "parallel":
            left = _behind(left[1:], _XARGS_VALUES)
            left = [*left, UNKNOWN] if left else []
        else:
            break
    if not left and command.words:
        return
    found = command
    if left is not command.words:
        found = msgspec.structs.replace(command, words=left, background=detached)
    yield from _inside(found, depth) if depth < DEPTH_MAX else (found,)


def _inside(command: Command, depth: int) -> Iterator[Command]:
    given, name = command.words, command.name
    if name in _SHELLS or (name == "su" and "-c" in given):
        script = _script_of(command)
        if script is None:
            yield command
        else:
            yield from _scripts(script, command, depth, command.remote)
    elif name == "eval":
        yield from _scripts(" ".join(given[1:]), command, depth, command.remote)
    elif name == "ssh":
        rest = _behind(given[1:], _SSH_VALUES)
        script = " ".join(rest[1:]) or command.stdin
        yield from _scripts(script, command, depth, True) if script.strip() else (command,)
    elif name in _CONTAINERS and "exec" in given[1:4]:
        rest = _behind(given[given.index("exec") + 1 :], _EXEC_VALUES)
        inner = rest[rest.index("--") + 1 :] if "--" in rest else rest[1:]
        if inner:
            yield from unwrapped(msgspec.structs.replace(command, words=inner, remote=True), depth + 1)
    elif name == "find" and (runs := _runs_of_find(given)):
        for run in runs:
            yield from unwrapped(msgspec.structs.replace(command, words=run), depth + 1)
        yield command
    elif name.startswith("python") and given[1:2] == ["-m"] and len(given) > 2:
        yield msgspec.structs.replace(command, words=given[2:])
    else:
        yield command


def _scripts(script: str, command: Command, depth: int, remote: bool) -> Iterator[Command]:
    for inner in parsed(script, None if remote else command.folder):
        inner.remote = inner.remote or remote
        if inner.feeds is None and command.feeds is not None:
            inner.feeds = command.feeds
        yield from unwrapped(inner, depth + 1)


def _script_of(command: Command) -> str | None:
    """What a shell is given to run: behind -c, or on its standard input; None where that is a file, or not known."""
    given = command.words
    for index, word in enumerate(given[1:], 1):
        if word.startswith("-") and not word.startswith("--") and "c" in word:
            rest = [one for one in given[index + 1 :] if one != "--"]
            return rest[0] if rest else None
        if not word.startswith(("-", "+")):
            return None
    said = command.stdin or printed(command.feeds)
    return said or None


def printed(command: Command | None) -> str:
    """What a command is known to print: that of `echo`, `printf`, and `cat` of a document."""
    for one in flow(command) if command is not None else ():
        if one.name in ("echo", "printf"):
            return " ".join(word for word in one.words[1:] if word not in ("-e", "-n", "-ne", "-en"))
        if one.name == "cat" and one.stdin:
            return one.stdin
        if one.name not in ("tee", "sudo", "cat"):
            return ""
    return ""


def _behind(given: list[str], values: frozenset[str]) -> list[str]:
    """The words behind the options, of which `values` take the next word."""
    at = 0
    while at < len(given) and given[at].startswith("-") and given[at] != "-":
        if given[at] == "--":
            return given[at + 1 :]
        at += 2 if given[at] in values else 1
    return given[at:]


def _runs_of_find(given: list[str]) -> list[list[str]]:
    runs = []
    for at, word in enumerate(given):
        if word in ("-exec", "-execdir", "-ok", "-okdir"):
            ends = [end for end in range(at + 1, len(given)) if given[end] in (";", "+")]
            run = given[at + 1 : ends[0] if ends else len(given)]
            places = [w for w in given[1:at] if not w.startswith("-")][:1] or ["."]
            runs.append([pattern_of_find(places[0], given) if one == "{}" else one for one in run])
    return [run for run in runs if run]


def pattern_of_find(place: str, given: list[str]) -> str:
    """What `find` looks for below a place, as a pattern of the shell; the place itself if for everything."""
    for at, word in enumerate(given[:-1]):
        if word in ("-name", "-iname", "-path", "-ipath"):
            return f"{place}/{given[at + 1]}"
    narrowed = any(word in ("-mtime", "-mmin", "-empty", "-regex", "-newer", "-size", "-user") for word in given)
    return f"{place}/file" if narrowed else place


def _is_assignment(word: str) -> bool:
    name, sign, _ = word.partition("=")
    return bool(sign) and name.isidentifier()
