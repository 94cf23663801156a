"""Tells others how a run went: after something was filed, after every good run (a heartbeat), after a failed one.

A hook is a command, split as a shell would split it and run without one. It is told in its environment and, in words,
on standard input. A hook that fails changes nothing: that is said, and the run goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from ledger.daemons.sweep import commands
from ledger.daemons.sweep.config import HookKeys, words_of
from ledger.daemons.sweep.judging.prompt import Redact
from ledger.daemons.sweep.register.texts import one_line
from projections.sweep import OK, QUIET

PREFIX = "LEDGERD_SWEEP_"
WORDS_CHARS_MAX = 300

Say = Callable[[str], None]


class Told(msgspec.Struct, frozen=True):
    """What hooks are told. `summary` is for standard input; `report` the path of the report, empty for none."""

    status: str
    headline: str
    summary: str
    filed: int = 0
    high: int = 0
    medium: int = 0
    low: int = 0
    excluded: int = 0
    report: str = ""


def run_hooks(keys: HookKeys, told: Told, cwd: Path, redact: Redact, say: Say) -> None:
    """Runs the hooks that this end of a run asks for; what goes wrong with one is said by `say`."""
    is_good = told.status in (OK, QUIET)
    due = [("hooks.notify_cmd", keys.notify_cmd)] if told.filed else []
    due += [("hooks.on_success_cmd", keys.on_success_cmd)] if is_good else []
    due += [] if is_good else [("hooks.on_failure_cmd", keys.on_failure_cmd)]
    for name, command in due:
        if words := words_of(command):
            trouble = _run(words, keys.timeout, told, cwd, redact)
            if trouble:
                say(f"{name} {trouble}; ignored")


def _run(words: list[str], time_s: float, told: Told, cwd: Path, redact: Redact) -> str | None:
    """What went wrong; None for nothing."""
    ran = commands.run(
        words,
        cwd=cwd,
        environment={**commands.outside_environment(), **_variables(told)},
        time_s=time_s,
        input=told.summary.encode(errors="replace"),
    )
    if ran.trouble:
        return f"could not be started: {ran.trouble}"
    if ran.timed_out:
        return f"took longer than {time_s:g} s"
    if ran.exit_code:
        said = one_line(redact((ran.stderr or ran.stdout).decode(errors="replace")), WORDS_CHARS_MAX)
        return f"ended with exit code {ran.exit_code}" + (f": {said}" if said else "")
    return None


def _variables(told: Told) -> dict[str, str]:
    fields = msgspec.structs.asdict(told)
    del fields["summary"]
    return {PREFIX + name.upper(): str(value).replace("\0", "") for name, value in fields.items()}
