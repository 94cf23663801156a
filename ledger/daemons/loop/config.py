"""loop.json: what may stand in it, read so that a typo never goes unnoticed."""

from __future__ import annotations

import difflib
import hashlib
import re
import shlex
from typing import Annotated, Any

import msgspec

from ledger.daemons.loop.folders import CONFIG_BYTES_MAX, InvalidLoop, LoopFolder, read_inside, read_text
from ledger.daemons.loop.scopes import is_pattern
from projections.loop_state import ROLES

_WEEK_S = 7 * 86400

Count = Annotated[int, msgspec.Meta(ge=0)]
Amount = Annotated[int, msgspec.Meta(ge=0)] | Annotated[float, msgspec.Meta(ge=0)]
Seconds = Annotated[int, msgspec.Meta(gt=0, le=_WEEK_S)] | Annotated[float, msgspec.Meta(gt=0, le=_WEEK_S)]
Command = list[str] | str | None


class Schedule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    interval_seconds: Amount = 3600


class Brakes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`max_wall_s` limits how long the agents have run in all. `no_progress` holds the loop after two rounds that
    changed nothing, `stop_on_pass` once the current task has passed."""

    max_iterations: Count | None = 25
    max_budget_usd: Amount | None = None
    max_wall_s: Amount | None = None
    score_plateau_window: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 5
    no_progress: bool = False
    stop_on_pass: bool = False


class BlastRadius(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`file_scope` are patterns as in .gitignore, relative to the project; none: anything may be touched."""

    file_scope: list[str] = []
    use_worktree: bool = False


class Role(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    prompt: str


class Roles(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    implement: Role | None = None
    verify: Role | None = None
    orchestrate: Role | None = None


class Harness(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`command` is the words of an agent, or the name of one that is known; `time_limit_s` is for each turn."""

    command: Command = None
    time_limit_s: Seconds = 3600


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A gate or a probe: a command that prints one JSON object."""

    command: Command = None
    time_limit_s: Seconds = 60


class LoopConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str = ""
    description: str = ""
    schedule: Schedule = Schedule()
    brakes: Brakes = Brakes()
    blast_radius: BlastRadius = BlastRadius()
    roles: Roles = Roles()
    harness: Harness = Harness()
    gate: Asked = Asked()
    context_probe: Asked = Asked()
    project_id: str | int | None = None
    goal_id: str | int | None = None


class Setup(msgspec.Struct, frozen=True):
    """A loop.json and the prompts that it names, as they were read at one moment."""

    config: LoopConfig
    digest: str
    prompts: dict[str, str]  # role → text

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that there are, in the order in which they run."""
        return tuple(role for role in ROLES if role in self.prompts)


def read_setup(folder: LoopFolder) -> Setup:
    """Raises InvalidLoop, which names the key or the file that is wrong."""
    try:
        text = read_text(folder.config, CONFIG_BYTES_MAX)
    except OSError as error:
        raise InvalidLoop(f"{folder.config}: {error.strerror}", hint="Make the file readable.") from error
    except ValueError as error:
        raise InvalidLoop(f"{folder.config} {error}", hint="Write it as one JSON object.") from error
    config = parse_config(text, str(folder.config))
    if config.name not in ("", folder.name):
        raise InvalidLoop(
            f"{folder.config}: name is {config.name!r}, but the loop's folder is {folder.name!r}",
            hint="Give both the same name.",
        )
    prompts = {}
    for role in ROLES:
        said: Role | None = getattr(config.roles, role)
        if said is not None:
            prompts[role] = read_inside(folder.home, said.prompt, f"roles.{role}.prompt")
    return Setup(msgspec.structs.replace(config, name=folder.name), digest_of(text), prompts)


def parse_config(text: str, where: str) -> LoopConfig:
    """The text of a loop.json; `where` names it in errors. Raises InvalidLoop."""
    try:
        config = msgspec.json.decode(text.encode(), type=LoopConfig)
    except msgspec.ValidationError as error:
        raise _invalid(str(error), where) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidLoop(f"{where} is no JSON: {error}", hint="Write it as one JSON object.") from error
    for name, asked in (("harness", config.harness), ("gate", config.gate), ("context_probe", config.context_probe)):
        words_of(asked.command, f"{where}: {name}.command")
    for pattern in config.blast_radius.file_scope:
        if not is_pattern(pattern):
            raise InvalidLoop(
                f"{where}: blast_radius.file_scope: {pattern!r} is no pattern", hint='Such as "src/**".'
            )
    return config


def words_of(command: Command, where: str) -> tuple[str, ...] | None:
    """A command as words: a text is split as a shell would, and no shell ever sees it. Raises InvalidLoop."""
    if command is None:
        return None
    try:
        words = tuple(shlex.split(command) if isinstance(command, str) else command)
    except ValueError as error:
        raise InvalidLoop(f"{where}: {error}", hint="Close the quotes, or write a list of words.") from error
    if not words or not words[0] or any("\0" in word for word in words):
        raise InvalidLoop(f"{where} names no program", hint='Write a list of words: ["python3", "agent.py"].')
    return words


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


_UNKNOWN = re.compile(r"Object contains unknown field `(?P<key>.*)`")
_PLACE = re.compile(r" - at `\$\.?(?P<path>.*)`$")


def _invalid(message: str, where: str) -> InvalidLoop:
    place = _PLACE.search(message)
    path = place["path"] if place else ""
    said = message[: place.start()] if place else message
    unknown = _UNKNOWN.match(said)
    if unknown is None:
        return InvalidLoop(f"{where}: {path or 'the whole'}: {said}", hint="Mend that value and run it again.")
    key = f"{path}.{unknown['key']}" if path else unknown["key"]
    known = _keys_at(path)
    near = difflib.get_close_matches(unknown["key"], known, 1)
    hint = f"Did you mean {near[0]!r}?" if near else f"The keys there are {', '.join(known)}."
    return InvalidLoop(f"{where}: {key} is no key of a loop", hint=hint)


def _keys_at(path: str) -> list[str]:
    kind: Any = LoopConfig
    for name in filter(None, path.split(".")):
        fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
        kind = next((one for one in _structs(fields.get(name))), None)
        if kind is None:
            return []
    return list(kind.__struct_fields__)


def _structs(annotation: Any) -> list[Any]:
    options = getattr(annotation, "__args__", (annotation,))
    return [one for one in options if isinstance(one, type) and issubclass(one, msgspec.Struct)]
