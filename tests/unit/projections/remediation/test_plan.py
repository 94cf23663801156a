"""What a plan must be, and what is said where it is not."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

from projections.remediation import plan
from projections.remediation.plan import Configuration, Problem, Project, check_configuration, check_plan, read_steps
from projections.remediation.schema import plan_schema

PROJECTS = (Project("Billing API", ("billing", "Zahlungen")), Project("Web"), Project("Café-Zürich", ("shop",)))
CONFIGURATION = Configuration(PROJECTS, "Web")


def step(**changes: Any) -> dict[str, Any]:
    return {
        "id": "s1",
        "order": 1,
        "target": "Web",
        "title": "Port it",
        "risk": "code",
        "prompt": "Port it.",
    } | changes


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in step().items() if key != name}


def problems(*steps: Any) -> list[Problem]:
    return check_plan({"steps": list(steps)}, CONFIGURATION)[1]


@pytest.mark.parametrize(
    ("target", "aliases", "meant"),
    [
        ("Billing API", [], "Billing API"),
        ("billing-api", [], "Billing API"),
        ("BILLING  a.p.i.", [], "Billing API"),
        ("zahlungen", [], "Billing API"),
        ("cafe zurich", [], "Café-Zürich"),
        ("CAFÉ ZÜRICH", [], "Café-Zürich"),
        ("unknown", ["nobody", "The Shop", "SHOP!"], "Café-Zürich"),
        ("Web", ["shop"], "Web"),
    ],
)
def test_a_target_is_found_by_its_normalised_name_or_an_alias(target: str, aliases: list[str], meant: str) -> None:
    [found], wrong = check_plan([step(target=target, aliases=aliases)], CONFIGURATION)
    assert wrong == []
    assert plan.project_of(found, PROJECTS) == meant


def test_steps_are_worked_on_in_rising_order_however_they_are_written() -> None:
    steps, wrong = read_steps([step(id="b", order=20), step(id="a", order=3)])
    assert (wrong, [one.id for one in steps]) == ([], ["a", "b"])


def test_a_step_keeps_all_that_was_written() -> None:
    [read], wrong = read_steps([step(phase=2, phaseLabel="Second", aliases=["x"], summary="A word")])
    assert wrong == []
    assert (read.phase, read.phase_label, read.aliases, read.summary) == ("2", "Second", ("x",), "A word")


BAD_STEPS: dict[str, tuple[Any, str, str]] = {
    "no object": ("Port it", "steps[0]", "is no object"),
    "no id": (without("id"), "steps[0].id", "is missing"),
    "an empty prompt": (step(prompt=" \n"), "steps[0].prompt", "is empty"),
    "no prompt": (without("prompt"), "steps[0].prompt", "is missing"),
    "no target": (without("target"), "steps[0].target", "is missing"),
    "no risk": (without("risk"), "steps[0].risk", "is missing"),
    "a risk that is none": (step(risk="Very High!"), "steps[0].risk", "'Very High!' is no risk"),
    "an order that is no number": (step(order="1"), "steps[0].order", "is no number of 0 or more"),
    "an order that is true": (step(order=True), "steps[0].order", "is no number of 0 or more"),
    "an order below 0": (step(order=-1), "steps[0].order", "is no number of 0 or more"),
    "an id with a slash": (step(id="a/b"), "steps[0].id", "holds a slash or a control character"),
    "an id that is a number": (step(id=7), "steps[0].id", "is no text"),
    "a long title": (step(title="x" * 501), "steps[0].title", "has 501 characters"),
    "a long prompt": (step(prompt="x" * 50_001), "steps[0].prompt", "has 50001 characters"),
    "a NUL": (step(prompt="a\x00b"), "steps[0].prompt", "holds the character U+0000"),
    "aliases that are no list": (step(aliases="web"), "steps[0].aliases", "is no list"),
    "an alias that is no text": (step(aliases=["a", 5]), "steps[0].aliases[1]", "is no text"),
    "a typo": (step(promt="x"), "steps[0].promt", "is no field of a step"),
    "an unknown target": (step(target="Wep"), "steps[0].target", "no project 'Wep'"),
    "a target without a letter": (step(target="!?"), "steps[0].target", "no project '!?'"),
}


@pytest.mark.parametrize("name", BAD_STEPS)
def test_what_is_wrong_with_a_step_is_said_with_its_place(name: str) -> None:
    bad, field, detail = BAD_STEPS[name]
    [problem] = problems(bad)
    assert problem.field == field
    assert detail in problem.detail


def test_a_typo_is_told_with_what_was_meant() -> None:
    assert problems(step(promt="x"))[0].hint == "Did you mean prompt?"
    assert (
        problems(step(target="Wep"))[0].hint == "Did you mean 'Web'? The projects are Billing API, Web, Café-Zürich."
    )


def test_all_that_is_wrong_is_said_at_once() -> None:
    found = problems(step(prompt=""), without("title"), step(id="s3", order=-3, risk="?"))
    assert [one.field for one in found] == ["steps[0].prompt", "steps[1].title", "steps[2].order", "steps[2].risk"]


@pytest.mark.parametrize(
    ("second", "field", "detail"),
    [
        (step(order=2), "steps[1].id", "'s1' stands at steps[0], too"),
        (step(id="s2"), "steps[1].order", "1 stands at steps[0], too"),
    ],
)
def test_no_two_steps_have_the_same_id_or_order(second: Any, field: str, detail: str) -> None:
    [problem] = problems(step(), second)
    assert (problem.field, problem.detail) == (field, detail)


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"steps": []}, "steps"),
        ({"steps": "no"}, "steps"),
        ({}, "steps"),
        (None, "steps"),
        ({"steps": [step()], "title": "x"}, "title"),
        ({"steps": [step(id=f"s{n}", order=n) for n in range(101)]}, "steps"),
    ],
)
def test_what_is_no_plan_is_refused(wanted: Any, field: str) -> None:
    assert [one.field for one in check_plan(wanted, CONFIGURATION)[1]] == [field]


def test_the_place_of_an_unknown_target_is_that_in_the_file() -> None:
    [problem] = problems(step(id="late", order=9, target="nobody"), step(id="early", order=1))
    assert problem.field == "steps[0].target"


def test_an_alias_of_two_projects_means_neither() -> None:
    both = Configuration((Project("one", ("x",)), Project("two", ("X!",))), "one")
    [of_project, of_target] = check_plan([step(target="x")], both)[1]
    assert (of_project.field, of_project.detail) == ("projects.two", "'X!' means 'one', too")
    assert (of_target.field, of_target.detail) == ("steps[0].target", "'x' may be one, two")


@pytest.mark.parametrize(
    ("configuration", "field"),
    [
        (Configuration(PROJECTS), "master"),
        (Configuration(PROJECTS, "nobody"), "master"),
        (Configuration(PROJECTS, "Web", "nobody"), "tool_project"),
        (Configuration((*PROJECTS, Project("web")), "Web"), "projects.web"),
        (Configuration((*PROJECTS, Project("…")), "Web"), "projects.…"),
    ],
)
def test_what_is_wrong_with_a_configuration_is_said_with_its_key(configuration: Configuration, field: str) -> None:
    assert [one.field for one in check_configuration(configuration)] == [field]


def test_an_alias_like_its_own_project_is_fine() -> None:
    assert check_configuration(Configuration((Project("web", ("Web", "WEB")),), "web")) == []


# The published schema


def test_the_published_schema_is_the_one_that_plans_are_checked_with() -> None:
    published = (files("ledger") / "docs" / "plan.schema.json").read_text(encoding="utf-8")
    assert json.loads(published) == plan_schema()
    jsonschema.Draft202012Validator.check_schema(plan_schema())


@pytest.mark.parametrize("name", [name for name in BAD_STEPS if name not in ("a NUL", "an empty prompt")])
def test_the_schema_refuses_what_the_check_refuses(name: str) -> None:
    """But for what no schema can know: the projects, and what white space is."""
    bad, field, _ = BAD_STEPS[name]
    judged = jsonschema.Draft202012Validator(plan_schema()).is_valid({"steps": [bad]})
    assert judged is (field == "steps[0].target" and isinstance(bad, dict) and "target" in bad)


def test_the_schema_takes_what_the_check_takes() -> None:
    whole = step(phase=2, phaseLabel="Second", aliases=["x"], summary="A word")
    for good in (step(), whole, step(aliases=None, summary=None, phase=None)):
        jsonschema.validate({"steps": [good]}, plan_schema())
        assert problems(good) == []
