"""What a plan must be. It is checked here wherever it is checked: on the server, and by `ledgerd remediate`."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

STEPS_MAX = 100
ID_CHARS_MAX = 100
WORD_CHARS_MAX = 200
TITLE_CHARS_MAX = 500
SUMMARY_CHARS_MAX = 4_000
PROMPT_CHARS_MAX = 50_000
ALIASES_MAX = 20
ORDER_MAX = 1_000_000

_HINT = 'A plan is {"steps": […]}.'
_RISK = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Problem(msgspec.Struct, frozen=True):
    """What is wrong, where: `field` is a path such as `steps[2].target`."""

    field: str
    detail: str
    hint: str = ""


class Step(msgspec.Struct, frozen=True, rename={"phase_label": "phaseLabel"}):
    """One step of a plan, as it is written."""

    id: str
    order: int
    target: str
    title: str
    prompt: str
    risk: str = "code"
    phase: str = ""
    phase_label: str = ""
    aliases: tuple[str, ...] = ()
    summary: str = ""


class Project(msgspec.Struct, frozen=True):
    """A project that steps may be aimed at. Where it lies and which agent works there only the runner knows."""

    name: str
    aliases: tuple[str, ...] = ()


class Rules(msgspec.Struct, frozen=True):
    """What bounds a run; fixed when it is started."""

    prefix: str = "LEDGERD"
    correction_rounds_max: int = 3
    repairs_max: int = 2  # for a step
    review_restarts_max: int = 2  # for an attempt
    feedback_chars_max: int = 2_000
    addendum_chars_max: int = 4_000
    reply_chars_max: int = 200_000


class Configuration(msgspec.Struct, frozen=True):
    """What is published of a runner's configuration: names, no folders and no commands. `master` is the project in
    which plans and steps are reviewed, `tool_project` the one in which the tool itself is repaired."""

    projects: tuple[Project, ...] = ()
    master: str | None = None
    tool_project: str | None = None
    rules: Rules = Rules()


def normalised(name: str) -> str:
    """A name without case, accents, spaces and punctuation."""
    plain = unicodedata.normalize("NFKD", name.casefold())
    return "".join(char for char in plain if char.isalnum())


def find_projects(name: str, projects: Iterable[Project]) -> list[Project]:
    """The projects that are meant by a name: those that bear it, else those that have it as an alias."""
    wanted = normalised(name)
    if not wanted:
        return []
    all_projects = list(projects)
    bearing = [one for one in all_projects if normalised(one.name) == wanted]
    return bearing or [one for one in all_projects if wanted in map(normalised, one.aliases)]


def project_of(step: Step, projects: Sequence[Project]) -> str | None:
    """The name of the project that a step is aimed at: by its target, else by the first of its aliases that is
    known. None where there is none, or more than one."""
    for name in (step.target, *step.aliases):
        found = find_projects(name, projects)
        if found:
            return found[0].name if len(found) == 1 else None
    return None


def read_steps(value: Any) -> tuple[tuple[Step, ...], list[Problem]]:
    """The steps of a plan in their order, from JSON: a list of steps, or an object with `steps`. With problems, all
    that were found, the steps are those that could be read."""
    read, problems = _read(value)
    return _in_order(read), problems


def check_plan(value: Any, configuration: Configuration) -> tuple[tuple[Step, ...], list[Problem]]:
    """The steps of a plan and all that is wrong with it, targets and the master included."""
    read, problems = _read(value)
    problems = [*check_configuration(configuration), *problems]
    for where, step in read.items():
        problems += _target_problems(step, f"{where}.target", configuration.projects)
    return _in_order(read), problems


def check_configuration(configuration: Configuration) -> list[Problem]:
    problems: list[Problem] = []
    if not configuration.master:
        hint = "Name one of the projects as `master` under [remediation] in ledgerd.toml."
        problems.append(Problem("master", "no master is configured", hint))
    names = [project.name for project in configuration.projects]
    for field, name in (("master", configuration.master), ("tool_project", configuration.tool_project)):
        if name and name not in names:
            problems.append(
                Problem(field, f"{name!r} is none of the projects", f"The projects are {_listed(names)}.")
            )
    owners: dict[str, str] = {}
    for project in configuration.projects:
        for name in (project.name, *project.aliases):
            key = normalised(name)
            if not key:
                problems.append(Problem(f"projects.{project.name}", f"{name!r} holds no letter and no digit"))
            elif owners.setdefault(key, project.name) != project.name:
                detail = f"{name!r} means {owners[key]!r}, too"
                problems.append(Problem(f"projects.{project.name}", detail, "Give each project names of its own."))
    return problems


def rebased(steps: Sequence[Step], revised: Sequence[Step]) -> list[Problem]:
    """Why `revised` cannot stand in for the steps of a run: only what is told to the agents may change."""
    problems = []
    if [step.id for step in steps] != [step.id for step in revised]:
        told = f"the run's steps are {_listed(step.id for step in steps)}, these are {_listed(s.id for s in revised)}"
        return [Problem("steps", f"another order: {told}", "Send every step of the run, in the same order.")]
    for index, (old, new) in enumerate(zip(steps, revised, strict=True)):
        for name, before, after in (
            ("order", old.order, new.order),
            ("target", normalised(old.target), normalised(new.target)),
            ("risk", old.risk, new.risk),
        ):
            if before != after:
                detail = f"was {getattr(old, name)!r} when the run started and is {getattr(new, name)!r} now"
                problems.append(Problem(f"steps[{index}].{name}", detail, "Start a new run for another plan."))
    return problems


def _read(value: Any) -> tuple[dict[str, Step], list[Problem]]:
    """The steps that can be read, each under its place in what was written."""
    if isinstance(value, Mapping):
        foreign = [Problem(str(name), "is no field of a plan", _HINT) for name in value if name != "steps"]
        steps, wrong = _read(value.get("steps"))
        return steps, foreign + wrong
    if not isinstance(value, list | tuple):
        return {}, [Problem("steps", "is no list", _HINT)]
    if not value:
        return {}, [Problem("steps", "is empty", "A plan needs one step at least.")]
    if len(value) > STEPS_MAX:
        return {}, [Problem("steps", f"has {len(value)} steps", f"Send at most {STEPS_MAX}.")]
    read: dict[str, Step] = {}
    problems: list[Problem] = []
    for index, item in enumerate(value):
        where = f"steps[{index}]"
        of_step = _problems_of(where, item)
        problems += of_step
        if not of_step:
            read[where] = _step(item)
    return read, problems + _repeated(read)


def _in_order(read: Mapping[str, Step]) -> tuple[Step, ...]:
    return tuple(sorted(read.values(), key=lambda step: step.order))


def _target_problems(step: Step, field: str, projects: Sequence[Project]) -> list[Problem]:
    if project_of(step, projects) is not None:
        return []
    names = [project.name for project in projects]
    meant = next((found for name in (step.target, *step.aliases) if (found := find_projects(name, projects))), [])
    if meant:
        detail = f"{step.target!r} may be {_listed(project.name for project in meant)}"
        return [Problem(field, detail, "Name the project itself.")]
    near = difflib.get_close_matches(step.target, names, 1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    return [Problem(field, f"no project {step.target!r}", f"{hint}The projects are {_listed(names)}.")]


def _problems_of(where: str, item: Any) -> list[Problem]:
    if not isinstance(item, Mapping):
        return [Problem(where, "is no object", "A step is an object with id, order, target, title, risk and prompt.")]
    problems = []
    for name in item:
        if name not in _FIELDS:
            near = difflib.get_close_matches(str(name), _FIELDS, 1)
            hint = f"Did you mean {near[0]}?" if near else f"The fields are {', '.join(_FIELDS)}."
            problems.append(Problem(f"{where}.{name}", "is no field of a step", hint))
    for name, (chars_max, needed) in _TEXTS.items():
        problems += _text_problems(f"{where}.{name}", item.get(name), chars_max, needed=needed)
    if isinstance(id := item.get("id"), str) and ("/" in id or _CONTROL.search(id)):
        problems.append(Problem(f"{where}.id", "holds a slash or a control character", "Use letters, digits and -."))
    order = item.get("order")
    if isinstance(order, bool) or not isinstance(order, int) or not 0 <= order <= ORDER_MAX:
        problems.append(
            Problem(f"{where}.order", "is no number of 0 or more", "Say where the step stands: 1, 2, 3 …")
        )
    risk = item.get("risk")
    if isinstance(risk, str) and risk and not _RISK.fullmatch(risk):
        hint = "Say it in one small word, such as code, infrastructure or production."
        problems.append(Problem(f"{where}.risk", f"{risk[:60]!r} is no risk", hint))
    return problems + _aliases_problems(f"{where}.aliases", item.get("aliases"))


def _text_problems(field: str, value: Any, chars_max: int, *, needed: bool) -> list[Problem]:
    if value is None or value == "":
        return (
            [Problem(field, "is missing" if value is None else "is empty", "Every step needs it.")] if needed else []
        )
    if isinstance(value, int) and not isinstance(value, bool) and field.endswith(".phase"):
        return []
    if not isinstance(value, str):
        return [Problem(field, "is no text")]
    if needed and not value.strip():
        return [Problem(field, "is empty", "Every step needs it.")]
    if len(value) > chars_max:
        return [Problem(field, f"has {len(value)} characters", f"Send at most {chars_max}.")]
    if "\x00" in value:
        return [Problem(field, "holds the character U+0000", "Take it out.")]
    return []


def _aliases_problems(field: str, value: Any) -> list[Problem]:
    if value is None:
        return []
    if not isinstance(value, list | tuple) or len(value) > ALIASES_MAX:
        return [Problem(field, f"is no list of at most {ALIASES_MAX} names")]
    return [
        p
        for i, alias in enumerate(value)
        for p in _text_problems(f"{field}[{i}]", alias, WORD_CHARS_MAX, needed=True)
    ]


def _repeated(steps: Mapping[str, Step]) -> list[Problem]:
    problems = []
    for name, own in (("id", "an id"), ("order", "an order")):
        seen: dict[Any, str] = {}
        for where, step in steps.items():
            value = getattr(step, name)
            if value in seen:
                detail = f"{value!r} stands at {seen[value]}, too"
                problems.append(Problem(f"{where}.{name}", detail, f"Give each step {own} of its own."))
            seen.setdefault(value, where)
    return problems


def _step(item: Mapping[str, Any]) -> Step:
    values = {name: value for name, value in item.items() if value is not None}
    if "phase" in values:
        values["phase"] = str(values["phase"])
    return msgspec.convert(values, Step)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


# field → at most so many characters, and whether a step must have it
_TEXTS = {
    "id": (ID_CHARS_MAX, True),
    "target": (WORD_CHARS_MAX, True),
    "title": (TITLE_CHARS_MAX, True),
    "prompt": (PROMPT_CHARS_MAX, True),
    "risk": (WORD_CHARS_MAX, True),
    "phase": (WORD_CHARS_MAX, False),
    "phaseLabel": (WORD_CHARS_MAX, False),
    "summary": (SUMMARY_CHARS_MAX, False),
}
_FIELDS = (*_TEXTS, "order", "aliases")
