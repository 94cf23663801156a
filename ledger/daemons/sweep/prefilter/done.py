"""What was done: the commands of a session, parsed, and the tables that say which of them destroy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ledger.daemons.sweep.model import DESTROYS, DONE, RISKS
from ledger.daemons.sweep.prefilter import databases, git, machines, removing, services
from ledger.daemons.sweep.prefilter.known import Known, learn
from ledger.daemons.sweep.prefilter.matching import Patterns, Rule, configured
from ledger.daemons.sweep.prefilter.shell import Command, parsed
from ledger.daemons.sweep.prefilter.wrapping import unwrapped

EXTRA_DESTRUCTIVE = Rule(
    "extra-destructive", DONE, DESTROYS, "A pattern of the configuration: scan.extra_destructive."
)
EXTRA_BENIGN = Rule("extra-benign", DONE, RISKS, "A pattern of the configuration: scan.extra_benign.")

_HARMLESS = frozenset({"--help", "--dry-run", "--dryrun", "--version", "--whatif", "--check"})
_TABLES = {
    **dict.fromkeys(("git", "gh"), (git.rule_of, machines.rule_of)),
    **dict.fromkeys(("docker", "podman", "npx", "brew"), (services.rule_of, machines.rule_of)),
}
_ALL = (removing.rule_of, services.rule_of, databases.rule_of, machines.rule_of)
_SHELL_ARGUMENTS = ("command", "cmd", "script", "code")
_SHELL_TOOLS = ("bash", "shell", "exec", "terminal", "command", "run", "process")
_WRITING_TOOLS = frozenset({"write", "write_file", "create_file", "create"})
_SQL_ARGUMENTS = ("sql", "query", "statement")


class Fired(NamedTuple):
    """A rule, and the command that it fired on as it was written."""

    rule: Rule
    source: str


class Destructive:
    """What the configuration adds is part of it. Raises InvalidField for a bad pattern."""

    def __init__(self, extra: Iterable[str] = (), benign: Iterable[str] = ()) -> None:
        self._extra = Patterns(configured("scan.extra_destructive", extra, EXTRA_DESTRUCTIVE))
        self._benign = Patterns(configured("scan.extra_benign", benign, EXTRA_BENIGN))

    def fired(self, commands: Iterable[Command], known: Known) -> Iterator[Fired]:
        """Each rule with the command that it fired on, in the order of the commands. `known` learns from them."""
        for command in commands:
            rule = self._rule_of(command, known)
            if rule is not None and self._benign.first(command.source) is None:
                yield Fired(rule, command.source or " ".join(command.words))
            learn(known, command)

    def fired_sql(self, sql: str) -> Iterator[Fired]:
        """As a tool was given it that is no shell."""
        rule = databases.sql_rule(sql)
        if rule is not None and self._benign.first(sql) is None:
            yield Fired(rule, sql)

    def _rule_of(self, command: Command, known: Known) -> Rule | None:
        extra = self._extra.first(command.source)
        if extra is not None or _HARMLESS & set(command.words):
            return extra
        for rule_of in _TABLES.get(command.name, _ALL):
            if (rule := rule_of(command, known)) is not None:
                return rule
        return None


def commands_of(tool: str, args: Any) -> list[Command]:
    """The commands that a tool's arguments run, without their wrappers; none where the tool is no shell."""
    if not isinstance(args, Mapping) or not any(part in tool.lower() for part in _SHELL_TOOLS):
        return []
    folder = next((args[name] for name in ("workdir", "cwd", "directory") if isinstance(args.get(name), str)), ".")
    for name in _SHELL_ARGUMENTS:
        given = args.get(name)
        if isinstance(given, str):
            return _run(parsed(given, folder))
        if isinstance(given, list) and given:  # as Codex writes it: the words themselves
            row = [str(word) for word in given]
            return _run([Command(row, source=" ".join(row), folder=folder)])
    return []


def sql_of(tool: str, args: Any) -> str:
    """The SQL that a tool is given which is no shell, such as one of a database server; else an empty text."""
    if isinstance(args, Mapping) and not any(part in tool.lower() for part in ("search", "fetch", "grep")):
        for name in _SQL_ARGUMENTS:
            if isinstance(args.get(name), str):
                return str(args[name])
    return ""


def written_by(tool: str, args: Any) -> str:
    """The file that a tool writes as a whole; an empty text where it does not."""
    if isinstance(args, Mapping) and tool.lower() in _WRITING_TOOLS:
        found = (args.get(name) for name in ("file_path", "filePath", "path"))
        return next((path for path in found if isinstance(path, str)), "")
    return ""


def _run(commands: list[Command]) -> list[Command]:
    found: list[Command] = []
    for command in commands:
        for inner in unwrapped(command):
            if not inner.source:
                inner.source = command.source
            found.append(inner)
    return found
