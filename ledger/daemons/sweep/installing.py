"""`sweep install`: what makes a run happen every day: a systemd timer of the user, or a line for a crontab."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ledger.daemons.sweep.config import Config
from ledger.daemons.sweep.guard import WriteGuard
from ledger.errors import InvalidField

TIMER = "timer"
CRONTAB = "crontab"

_AT = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_CARRIED = ("LEDGERD_URL", "LEDGERD_TOKEN_FILE", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "PATH")

SERVICE = """\
[Unit]
Description=ledgerd: sweep of {register}

[Service]
Type=oneshot
ExecStart={command}
{environment}# 3: another run was under way
SuccessExitStatus=3
Nice=10
"""

TIMER_UNIT = """\
[Unit]
Description=ledgerd: sweep of {register}, every day at {at}

[Timer]
OnCalendar=*-*-* {at}:00
RandomizedDelaySec=300
Persistent=true

[Install]
WantedBy=timers.target
"""


class Unit(msgspec.Struct, frozen=True):
    path: Path
    text: str


def units(config: Config, command: Sequence[str], at: str, environment: Mapping[str, str] = os.environ) -> list[Unit]:
    """The service and the timer of a user's systemd. Raises InvalidField for a time that is none."""
    _hour_and_minute(at)
    base = Path(environment.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "systemd" / "user"
    name = f"ledgerd-sweep-{config.register}"
    words = [*command, "sweep", "-c", str(config.file), "run"]
    variables = "".join(f"Environment={_quoted(f'{key}={environment[key]}')}\n" for key in _carried(environment))
    service = SERVICE.format(
        register=config.register,
        command=" ".join(_quoted(word).replace("$", "$$") for word in words),
        environment=variables,
    )
    timer = TIMER_UNIT.format(register=config.register, at=at)
    return [Unit(base / f"{name}.service", service), Unit(base / f"{name}.timer", timer)]


def write(written: Sequence[Unit]) -> None:
    """Puts the units in their place. Raises WriteRefused, NotWritten."""
    guard = WriteGuard([], [unit.path for unit in written])
    for unit in written:
        guard.write(unit.path, unit.text.encode())


def crontab_line(config: Config, command: Sequence[str], at: str, environment: Mapping[str, str] = os.environ) -> str:
    """Raises InvalidField for a time that is none."""
    hour, minute = _hour_and_minute(at)
    variables = [f"{key}={shlex.quote(environment[key])}" for key in _carried(environment)]
    words = [*variables, *map(shlex.quote, [*command, "sweep", "-c", str(config.file), "run"])]
    line = " ".join(words).replace("%", r"\%")  # which cron takes for the end of the line
    return f"{minute} {hour} * * * {line}"


def _carried(environment: Mapping[str, str]) -> list[str]:
    """The variables by which a run finds the same places and programs as now. A token stays in its file."""
    return [key for key in _CARRIED if environment.get(key, "").isprintable() and environment.get(key)]


def _hour_and_minute(at: str) -> tuple[int, int]:
    found = _AT.fullmatch(at)
    if found is None:
        raise InvalidField("--at", f"{at!r} is no time of day", hint="Say it as 04:30.")
    return int(found[1]), int(found[2])


def _quoted(word: str) -> str:
    """A word as a unit has it."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"' if re.search(r"[^\w@/.,:=+-]", word) else escaped
