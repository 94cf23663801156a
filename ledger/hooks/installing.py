"""Writes the hooks into an agent's settings and takes them out again; everything else there stays as it is.

All three agents keep hooks in JSON, in the form of Claude Code: `{"hooks": {EVENT: [{"matcher": …, "hooks": [{"type":
"command", "command": …, "timeout": …}]}]}}`. Claude Code and Gemini have it in `settings.json`, Codex in
`hooks.json`. A hook is ours if its command runs `ledgerd hook AGENT`, at whatever place.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ledger.errors import InvalidRequest, LedgerError
from ledger.hooks import claude_code, codex, gemini

TIMEOUT_S = 10


class UnfitSettings(InvalidRequest):
    """The settings are there, and cannot be edited without risk."""

    code = "unfit_settings"


class NotWritten(LedgerError):
    code = "not_written"
    hint = "Make the folder writable, or name another file with --settings."


class Target(msgspec.Struct, frozen=True):
    """Where an agent has its hooks: the file under its folder, which `variable` names or else is `folder` under the
    home, the events that it knows, what matches all tools, and its timeouts' units for a second."""

    variable: str | None
    folder: str
    file: str
    events: tuple[str, ...]
    matched: frozenset[str]
    matcher: str
    units_of_second: int = 1


TARGETS: dict[str, Target] = {
    "claude-code": Target(
        "CLAUDE_CONFIG_DIR",
        ".claude",
        "settings.json",
        claude_code.EVENTS,
        frozenset({"PreToolUse", "PostToolUse", "PostToolUseFailure"}),
        "*",
    ),
    "codex": Target(
        "CODEX_HOME",
        ".codex",
        "hooks.json",
        codex.EVENTS,
        frozenset({"PreToolUse", "PermissionRequest", "PostToolUse"}),
        "*",
    ),
    "gemini": Target(
        None, ".gemini", "settings.json", gemini.EVENTS, frozenset({"BeforeTool", "AfterTool"}), "*", 1000
    ),
}


def settings_path(agent: str, environment: Mapping[str, str]) -> Path:
    """Where the agent has the settings of this user."""
    target = TARGETS[agent]
    named = environment.get(target.variable) if target.variable else None
    home = Path(environment.get("HOME") or Path.home())
    return (Path(named) if named else home / target.folder) / target.file


def read(path: Path) -> str:
    """The settings as text, empty where there is no file. Raises UnfitSettings."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise UnfitSettings(f"{path}: {error}", hint="Nothing was changed.") from error


def installed(before: str, agent: str, command: Sequence[str], path: Path) -> str:
    """The settings with hooks for all events that run `command` with `hook AGENT` behind it. The same text where they
    are there already. Raises UnfitSettings for what is no JSON, or not of the form above."""
    target = TARGETS[agent]
    settings = _parsed(before, path)
    line = shlex.join([*command, "hook", agent])
    handler = {"type": "command", "command": line, "timeout": TIMEOUT_S * target.units_of_second}
    hooks = settings.setdefault("hooks", {})
    for event in target.events:
        groups = hooks.setdefault(event, [])
        mine = [one for group in groups for one in group["hooks"] if _is_ours(one, agent)]
        for one in mine:
            one.update(handler)
        if not mine:
            matcher = {"matcher": target.matcher} if event in target.matched else {}
            groups.append({**matcher, "hooks": [dict(handler)]})
    return _written(settings, before, path)


def uninstalled(before: str, agent: str, path: Path) -> str:
    """The settings without our hooks, and without the groups and events that they alone had filled. The same text
    where there are none. Raises UnfitSettings as `installed` does."""
    settings = _parsed(before, path)
    hooks = settings.get("hooks", {})
    for event in TARGETS[agent].events:
        groups = hooks.get(event, [])
        kept = [_without_ours(group, agent) for group in groups]
        kept = [group for group, old in zip(kept, groups, strict=True) if group["hooks"] or group == old]
        if kept != groups:
            hooks[event] = kept
            if not kept:
                del hooks[event]
                if not hooks:
                    del settings["hooks"]
    return _written(settings, before, path)


def write(path: Path, text: str) -> None:
    """Puts the text in the file's place in one step, with the mode that the file had; where the path is a link, what
    it points at is replaced. Raises NotWritten."""
    real = Path(os.path.realpath(path))
    draft = real.with_name(f".{real.name}.{secrets.token_hex(4)}")
    try:
        real.parent.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(real.stat().st_mode) if real.exists() else 0o600
        try:
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            draft.chmod(mode)
            draft.replace(real)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise NotWritten(f"{path}: {error.strerror}") from error


def _parsed(text: str, path: Path) -> dict[str, Any]:
    try:
        settings = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise UnfitSettings(f"{path} is no JSON: {error}", hint="Nothing was changed. Mend it first.") from error
    if not _fits(settings):
        raise UnfitSettings(
            f"{path} has hooks of a form that is not known here",
            hint='Nothing was changed. Expected is {"hooks": {EVENT: [{"hooks": [{"command": …}]}]}}.',
        )
    return dict(settings)


def _fits(settings: Any) -> bool:
    """Whether the hooks of all events that we know are of the form that they should be."""
    hooks = settings.get("hooks", {}) if isinstance(settings, dict) else None
    if not isinstance(hooks, dict):
        return False
    known = {event for target in TARGETS.values() for event in target.events}
    return all(
        isinstance(groups, list) and all(map(_fits_group, groups)) for e, groups in hooks.items() if e in known
    )


def _fits_group(group: Any) -> bool:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    return isinstance(hooks, list) and all(isinstance(one, dict) for one in hooks)


def _without_ours(group: dict[str, Any], agent: str) -> dict[str, Any]:
    return {**group, "hooks": [one for one in group["hooks"] if not _is_ours(one, agent)]}


def _is_ours(handler: dict[str, Any], agent: str) -> bool:
    command = handler.get("command")
    return isinstance(command, str) and bool(
        re.search(rf"\b(?:ledgerd|ledger\.cli)\b\S*\s+hook\s+{agent}\s*$", command)
    )


def _written(settings: dict[str, Any], before: str, path: Path) -> str:
    """As JSON, with the indentation that the file had; the text before where it says the same."""
    if settings == _parsed(before, path):
        return before
    found = re.search(r"^([ \t]+)\S", before, re.MULTILINE)
    return json.dumps(settings, indent=found[1] if found else 2, ensure_ascii=False) + "\n"
