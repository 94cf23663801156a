"""What a sweep is told: every key of its TOML file, with its default, and the paths that follow from them.

A mistake names its key and stops the sweep before it reads or writes anything. Relative paths are taken from the
folder of the file, `~` is the home of whoever runs it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import field
from msgspec.structs import replace

from ledger.client.redaction import Redactor
from ledger.errors import InvalidField, InvalidRequest

FILE_NAME = "sweep.toml"
VARIABLE = "LEDGERD_SWEEP_CONFIG"

Count = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=24 * 3600)]
SourceName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Words = str | tuple[str, ...]  # a command: one text, split as a shell would, or its words

_HINT = "`ledgerd sweep config` shows every key and what is in force."
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<key>[^`]*)`")
_MISSING = re.compile(r"Object missing required field `(?P<key>[^`]*)`")
_AT = re.compile(r" - at `\$\.?(?P<path>[^`]*)`")


class InvalidConfig(InvalidRequest):
    """The configuration cannot be used: exit code 2."""

    code = "invalid_sweep_config"
    hint = _HINT


class SourceKeys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`path` is a folder, a glob of SQLite files (opencode) or the URL of a service (ledger); empty: where that agent
    has its transcripts, or the server that the settings name."""

    type: Literal["claude-code", "codex", "gemini", "opencode", "ledger"]
    path: str = ""
    name: SourceName | None = None

    @property
    def called(self) -> str:
        return self.name or self.type


class ScanKeys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`exclude` are shell patterns of sessions' paths that are never judged. The extra patterns are RE2's."""

    max_candidates: Count = 50
    max_per_session: Count = 12
    first_run: Literal["baseline", "backfill"] = "baseline"
    exclude: tuple[str, ...] = ()
    extra_destructive: tuple[str, ...] = ()
    extra_benign: tuple[str, ...] = ()
    extra_alarm: tuple[str, ...] = ()


class JudgeKeys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`binary` and `extra_args` are for the backend claude; `base_url`, `api_key_env` (the name of a variable),
    `json_mode` and `max_tokens` for openai; `command` for command."""

    backend: Literal["claude", "openai", "command"] = "claude"
    model: str = ""
    timeout: Seconds = 600.0
    binary: str = "claude"
    extra_args: tuple[str, ...] = ()
    base_url: str = ""
    api_key_env: str = "OPENAI_API_KEY"
    json_mode: bool = True
    max_tokens: Annotated[int, msgspec.Meta(ge=1, le=10**6)] = 16_000
    command: Words = ""
    prompt_file: str = ""


class RegisterKeys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    dir: str = ""
    order: Literal["severity", "newest"] = "severity"
    title: Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"^[^\r\n]+$")] = "Incidents"


class GitKeys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    enabled: bool = False
    push: bool = False
    remote: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,99}$")] = "origin"
    branch: Annotated[str, msgspec.Meta(pattern=r"^(?:[A-Za-z0-9][A-Za-z0-9._/-]{0,199})?$")] = ""
    expected_remote_url: str = ""
    author_name: Annotated[str, msgspec.Meta(pattern=r"^[^<>\r\n]+$")] = "ledgerd sweep"
    author_email: Annotated[str, msgspec.Meta(pattern=r"^[^<>\s]+$")] = "sweep@ledgerd.invalid"


class StateKeys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    file: str = ""
    seen_list: str = ""


class PrivacyKeys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    redact: bool = True
    extra_redact_patterns: tuple[str, ...] = ()


class HookKeys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    notify_cmd: str = ""
    on_success_cmd: str = ""
    on_failure_cmd: str = ""
    timeout: Seconds = 60.0


class Keys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    source: tuple[SourceKeys, ...] = ()
    scan: ScanKeys = ScanKeys()
    judge: JudgeKeys = JudgeKeys()
    ledger: RegisterKeys = RegisterKeys()
    git: GitKeys = GitKeys()
    state: StateKeys = StateKeys()
    privacy: PrivacyKeys = PrivacyKeys()
    hooks: HookKeys = HookKeys()


class Config(msgspec.Struct, frozen=True):
    """A configuration that was checked: the keys with all defaults in force, and the paths, absolute.

    `register` names the register on the server and in the ids of runs' tasks.
    """

    file: Path
    keys: Keys
    register: str
    folder: Path
    state: Path
    lock: Path
    seen_list: Path | None
    prompt: str | None = field(default=None)


def config_path(named: Path | None, environment: Mapping[str, str] = os.environ) -> Path:
    """The file that was named, else `$LEDGERD_SWEEP_CONFIG`, else `ledgerd/sweep.toml` in the user's configuration
    folder by the XDG base directory rules."""
    if named is not None:
        return named.absolute()
    if variable := environment.get(VARIABLE):
        return Path(variable).expanduser().absolute()
    base = environment.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "ledgerd" / FILE_NAME


def load(path: Path, environment: Mapping[str, str] = os.environ) -> Config:
    """Reads and checks the file. Raises InvalidConfig, which names the file and the key."""
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise InvalidConfig(f"{path} is not there", hint="`ledgerd sweep init` writes one; -c names it.") from error
    except OSError as error:
        raise InvalidConfig(f"{path}: {error.strerror}", hint="Make the file readable.") from error
    return parsed(data, path, environment)


def parsed(data: bytes, path: Path, environment: Mapping[str, str] = os.environ) -> Config:
    """The configuration that stands in `data`, as if that were the file at `path`. Raises InvalidConfig."""
    try:
        values = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"{path}: {error}", hint="Write it as TOML; `ledgerd sweep init` shows how.") from error
    return _checked(_keys(values, path), path, environment)


def _checked(keys: Keys, path: Path, environment: Mapping[str, str]) -> Config:
    keys = replace(keys, source=tuple(replace(one, name=one.called) for one in keys.source))
    _refuse_contradictions(keys, path)
    base = path.parent
    data = Path(environment.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "ledgerd"
    folder = _path(keys.ledger.dir, base, "ledger.dir") or data / "incidents"
    name = _register_name(folder)
    states = Path(environment.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "ledgerd"
    state = _path(keys.state.file, base, "state.file") or states / f"sweep-{name}.db"
    seen_list = _path(keys.state.seen_list, base, "state.seen_list")
    lock = state.with_name(state.name + ".lock")
    _refuse_shared_paths(path, folder, state, lock, seen_list)
    return Config(path, keys, name, folder, state, lock, seen_list, _prompt(keys, base))


def plain_name(text: str) -> str:
    """A name of letters, digits, dots and dashes, fit for an id and a file."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text)[:60].strip("-.")


def words_of(command: Words) -> list[str]:
    """The words of a command; ValueError where its quotes do not match."""
    return shlex.split(command) if isinstance(command, str) else list(command)


def _keys(values: dict[str, Any], path: Path) -> Keys:
    try:
        return msgspec.convert(values, Keys)
    except msgspec.ValidationError as error:
        raise InvalidConfig(f"{path}: {_named(str(error))}") from error


def _named(message: str) -> str:
    """What msgspec says, with the key in front: `scan.max_candidates: Expected `int`, got `str``."""
    found = _AT.search(message)
    where = found["path"] if found else ""
    said = _AT.sub("", message)
    if unknown := _UNKNOWN.search(said):
        return f"{_joined(where, unknown['key'])}: there is no such key"
    if missing := _MISSING.search(said):
        return f"{_joined(where, missing['key'])}: is missing"
    return f"{where}: {said}" if where else said


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _refuse_contradictions(keys: Keys, path: Path) -> None:
    def refuse(key: str, why: str) -> None:
        raise InvalidConfig(f"{path}: {key}: {why}")

    names: set[str] = set()
    for number, source in enumerate(keys.source):
        if source.called in names:
            refuse(f"source[{number}].name", f"two sources are named {source.called!r}")
        names.add(source.called)
    judge = keys.judge
    if judge.backend == "openai":
        if not re.match(r"https?://[^/\s]", judge.base_url):
            refuse("judge.base_url", "the backend openai needs an http:// or https:// address")
        if not judge.model:
            refuse("judge.model", "the backend openai needs the name of a model")
    if judge.backend == "command" and not judge.command:
        refuse("judge.command", "the backend command needs a command")
    if judge.backend == "claude" and not judge.binary:
        refuse("judge.binary", "is empty")
    commands = {"judge.command": judge.command}
    commands |= {f"hooks.{name}": getattr(keys.hooks, name) for name in _HOOKS}
    for key, command in commands.items():
        try:
            words_of(command)
        except ValueError as error:
            refuse(key, f"cannot be split into words: {error}")
    if keys.git.push and not keys.git.enabled:
        refuse("git.push", "needs git.enabled = true")
    for number, pattern in enumerate(keys.privacy.extra_redact_patterns):
        try:
            Redactor([pattern])
        except InvalidField as error:
            refuse(f"privacy.extra_redact_patterns[{number}]", error.detail.removeprefix("pattern: "))


_HOOKS = ("notify_cmd", "on_success_cmd", "on_failure_cmd")


def _path(text: str, base: Path, key: str) -> Path | None:
    if not text:
        return None
    if "\0" in text:
        raise InvalidConfig(f"{key}: holds a NUL")
    return Path(os.path.abspath(base / Path(text).expanduser()))


def _refuse_shared_paths(path: Path, folder: Path, state: Path, lock: Path, seen_list: Path | None) -> None:
    """No two of the paths may be the same, and none may be the file of the configuration."""
    named = {"ledger.dir": folder, "state.file": state, "state.file (its lock)": lock}
    if seen_list is not None:
        named["state.seen_list"] = seen_list
    taken = {path.absolute(): "the configuration itself"}
    for key, one in named.items():
        if one in taken:
            raise InvalidConfig(f"{path}: {key}: {one} is {taken[one]} already")
        taken[one] = key


def _prompt(keys: Keys, base: Path) -> str | None:
    path = _path(keys.judge.prompt_file, base, "judge.prompt_file")
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"judge.prompt_file: {path}: {error}") from error


def _register_name(folder: Path) -> str:
    """The name of a register: that of its folder, made unlike those of other folders. It says nothing of the host,
    whose name may change: the state is found by it."""
    told_apart = hashlib.blake2b(str(folder).encode(errors="replace"), digest_size=3)
    return f"{plain_name(folder.name) or 'register'}-{told_apart.hexdigest()}"
