"""`sweep config`: what is in force, and every path that a run writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ledger.client.redaction import redact
from ledger.daemons.sweep.assembling import written_files
from ledger.daemons.sweep.config import Config
from ledger.daemons.sweep.register.folder import INCIDENTS, INDEX, LATEST, REPORTS
from ledger.daemons.sweep.repository import Repository


def in_force(config: Config) -> dict[str, Any]:
    """All keys with their values, as JSON would have them; without the passwords that addresses and commands may
    hold. Patterns stay as they are: they may well look like what they are for."""
    keys: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(config.keys))
    keys["ledger"]["dir"] = str(config.folder)
    for table in ("source", "judge", "git", "hooks"):
        keys[table] = _redacted(keys[table])
    keys["state"] = {"file": str(config.state), "seen_list": str(config.seen_list or "")}
    return keys


def writes(config: Config) -> list[Path]:
    """Every path that a run may write to; a folder stands for what is below it."""
    folder = config.folder
    register = [folder / name for name in (INCIDENTS, INDEX, LATEST)] + [folder / REPORTS]
    return [*register, *written_files(config), *_of_the_repository(config)]


def lines(config: Config) -> Iterator[str]:
    """As TOML, and then the paths."""
    yield f"# {config.file}"
    for table, values in in_force(config).items():
        for one in values if isinstance(values, list) else [values]:
            yield ""
            yield f"[[{table}]]" if isinstance(values, list) else f"[{table}]"
            yield from (f"{name} = {_toml(value)}" for name, value in one.items())
    yield ""
    yield "writes:"
    yield from (f"  {path}" for path in writes(config))


def _redacted(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_redacted(one) for one in value]
    return {name: _redacted(one) for name, one in value.items()} if isinstance(value, dict) else value


def _of_the_repository(config: Config) -> list[Path]:
    if not config.keys.git.enabled or not config.folder.is_dir():
        return []
    found = Repository(config.folder, config.keys.git, str).git_folder()
    return [] if found is None else [found]


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)
