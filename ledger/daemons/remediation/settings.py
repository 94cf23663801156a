"""How remediation is configured: `[remediation]` of the settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from ledger.errors import InvalidField
from projections.remediation.plan import Configuration, Project, Rules, check_configuration

Command = str | tuple[str, ...]  # a preset of the harness, or words
Seconds = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=0, le=100)]

LEASE_S = 120.0


class ProjectSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a project lies, what else it is called, and the agent that works there. A relative `path` is below the
    folder in which the runner was started."""

    path: str
    agent: Command
    aliases: tuple[str, ...] = ()


class RemediationSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`master` is the project in which reviews take place, `reviewer` the agent that does them (by default the one of
    that project), `tool_project` the one in which the tool itself is repaired. `token` is an owner's (by default that
    of the other commands), `state_dir` where replies and what is to be sent wait. Times in seconds."""

    master: str | None = None
    reviewer: Command | None = None
    tool_project: str | None = None
    projects: dict[str, ProjectSettings] = {}
    prefix: Annotated[str, msgspec.Meta(pattern=r"^[A-Z][A-Z0-9_]{0,39}\Z")] = "LEDGERD"
    correction_rounds_max: Count = 3
    repairs_max: Count = 2
    turn_s: Seconds = 3600.0
    lease_s: Seconds = LEASE_S
    token: str | None = None
    state_dir: str | None = None

    def published(self) -> Configuration:
        """What the server is told: names alone."""
        projects = tuple(Project(name, one.aliases) for name, one in sorted(self.projects.items()))
        rules = Rules(self.prefix, self.correction_rounds_max, self.repairs_max)
        return Configuration(projects, self.master, self.tool_project, rules)

    def project(self, name: str) -> ProjectSettings:
        """Raises InvalidField for one that is not configured here."""
        found = self.projects.get(name)
        if found is None:
            known = ", ".join(sorted(self.projects)) or "none"
            hint = f"Configure it under [remediation.projects.{name}] in ledgerd.toml; the projects are {known}."
            raise InvalidField("project", f"no project {name!r} is configured on this host", hint=hint)
        return found

    def folder(self, name: str) -> Path:
        return Path(self.project(name).path).expanduser().absolute()

    def agent(self, name: str, *, reviews: bool) -> Command:
        if reviews and self.reviewer is not None:
            return self.reviewer
        return self.project(name).agent


def check(settings: RemediationSettings) -> None:
    """Raises InvalidField, naming the first key that is wrong: what can be seen without running anything."""
    for problem in check_configuration(settings.published()):
        raise InvalidField(f"remediation.{problem.field}", problem.detail, hint=problem.hint)
    for name in sorted(settings.projects):
        if not settings.folder(name).is_dir():
            detail = f"{settings.folder(name)} is no folder"
            raise InvalidField(f"remediation.projects.{name}.path", detail, hint="Name the folder of the project.")
