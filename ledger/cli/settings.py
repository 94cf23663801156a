"""Settings: flags first, then LEDGERD_* variables, then ledgerd.toml, then the defaults that stand here."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import click
import msgspec

from ledger.errors import InvalidRequest

FILE_NAME = "ledgerd.toml"
PREFIX = "LEDGERD_"

Size = Annotated[int, msgspec.Meta(ge=1)]
F = TypeVar("F", bound=Callable[..., Any])


class InvalidSettings(InvalidRequest):
    code = "invalid_settings"


def data_dir(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder of the default store and of the owner token beside it, by the XDG base directory rules."""
    base = environment.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "ledgerd"


def default_store() -> str:
    return f"sqlite:///{data_dir() / 'ledger.db'}"


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What may be set. Sizes in bytes, times in seconds.

    `store` is a store's URL; `host` and `port` are where `ledgerd serve` listens (0: a free port), in so many
    `workers`; `url` and `token` are how the other commands reach a server (None: found by
    `server_from_environment`); `outbox` is where they keep what waits to be sent (None: found by `default_path`).
    `remediation` is read by `ledgerd remediate`, as `RemediationSettings`.
    """

    store: str = msgspec.field(default_factory=default_store)
    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 8137
    workers: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    url: str | None = None
    token: str | None = None
    outbox: str | None = None
    silent_after_s: Annotated[float, msgspec.Meta(gt=0)] = 300
    max_body_bytes: Size = 16 * 2**20
    max_payload_bytes: Size = 4 * 2**20
    max_in_flight_bytes: Size = 64 * 2**20
    remediation: dict[str, Any] = {}


def load_settings(file: Path | None = None, environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings of `file` (else ./ledgerd.toml, if it is there) with the environment over them.

    Raises InvalidSettings, naming the key and where it stands, for an unknown key of the file or a value of
    the wrong type or out of bounds. An empty variable counts as not set. A ./ledgerd.toml that names a server must
    hold the token for it, too: it may lie in a folder that somebody else wrote, and would be sent one of ours.
    """
    path = file if file is not None else Path(FILE_NAME)
    from_file = _read(path) if file is not None or path.is_file() else {}
    _convert(from_file, str(path), strict=True)
    variables = {name: PREFIX + name.upper() for name in Settings.__struct_fields__}
    from_environment = {name: environment[key] for name, key in variables.items() if environment.get(key)}
    for name, value in from_environment.items():
        _convert({name: value}, variables[name], strict=False)
    if file is None and "url" in from_file and "token" not in from_file and "url" not in from_environment:
        raise InvalidSettings(
            f"{path}: url stands there without a token, and no token of ours is sent to a server that a folder names",
            hint=f"Set LEDGERD_URL, or give the file by name: --config {path}.",
        )
    return _convert({**from_file, **from_environment}, str(path), strict=False)


def current_settings() -> Settings:
    """The settings that `ledgerd` was started with; read anew where a subcommand runs without it."""
    context = click.get_current_context(silent=True)
    return (context.find_object(Settings) if context else None) or load_settings()


def setting(name: str, **attributes: Any) -> Callable[[F], F]:
    """A click option `--name` for the setting of that name, which stands in where the flag is not given:
    `@setting("store", help="…")` passes `store`."""
    flag = "--" + name.replace("_", "-")
    return click.option(flag, name, default=lambda: getattr(current_settings(), name), **attributes)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidSettings(f"{path}: {error}", hint="Write it as TOML: `port = 8137`.") from error
    except OSError as error:
        raise InvalidSettings(f"{path}: {error.strerror}", hint="Make the file readable.") from error


def _convert(values: dict[str, Any], where: str, *, strict: bool) -> Settings:
    try:
        return msgspec.convert(values, Settings, strict=strict)
    except msgspec.ValidationError as error:
        known = ", ".join(Settings.__struct_fields__)
        raise InvalidSettings(f"{where}: {error}", hint=f"The settings are {known}.") from error
