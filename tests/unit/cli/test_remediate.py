from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from projections.remediation.schema import plan_schema

Run = Callable[..., Result]

SETTINGS = """
[remediation]
master = "platform"
[remediation.projects.platform]
path = "platform"
agent = "claude"
[remediation.projects.web]
path = "web"
agent = ["./agent.sh", "{prompt}"]
aliases = ["The Site"]
"""


def step(**changes: Any) -> dict[str, Any]:
    return {
        "id": "s1",
        "order": 1,
        "target": "web",
        "title": "Port it",
        "risk": "code",
        "prompt": "Port it.",
    } | changes


@pytest.fixture
def configured(tmp_path: Path) -> Path:
    (tmp_path / "ledgerd.toml").write_text(SETTINGS)
    for name in ("platform", "web"):
        (tmp_path / name).mkdir()
    return tmp_path


def plan(folder: Path, *steps: Any) -> str:
    path = folder / "plan.json"
    path.write_text(json.dumps({"steps": steps}))
    return str(path)


def test_a_good_plan_is_shown_with_the_projects_that_its_steps_mean(run: Run, configured: Path) -> None:
    path = plan(configured, step(), step(id="s2", order=2, target="THE site", risk="production"))
    result = run("remediate", "plan", "check", path)
    assert result.exit_code == 0
    assert result.output == "1\ts1\tweb\tcode\n2\ts2\tweb\tproduction\n"


def test_what_is_wrong_with_a_plan_is_said_line_by_line(run: Run, configured: Path) -> None:
    path = plan(configured, step(target="wep"), step(order=2, promt="x"), {"id": "s3"})
    result = run("remediate", "plan", "check", path)
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert lines[0] == "steps[1].promt: is no field of a step. Did you mean prompt?"
    assert [line.partition(":")[0] for line in lines] == [
        "steps[1].promt",
        "steps[2].target",
        "steps[2].title",
        "steps[2].prompt",
        "steps[2].risk",
        "steps[2].order",
        "steps[0].target",
    ]


def test_a_check_for_programs(run: Run, configured: Path) -> None:
    result = run("remediate", "plan", "check", plan(configured, step(target="x")), "--json")
    assert result.exit_code == 1
    told = json.loads(result.output)
    assert (told["ok"], told["problems"][0]["field"]) == (False, "steps[0].target")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is no JSON"),
        ("[]", "steps: is empty"),
        ("7", "steps: is no list"),
        (b"\xff\xfe", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
    ],
)
@pytest.mark.parametrize("words", [("plan", "check"), ("start",), ("resume",)])
def test_what_is_no_plan_is_said_and_nothing_is_sent(
    run: Run, configured: Path, content: str | bytes, said: str, words: tuple[str, ...]
) -> None:
    path = configured / "bad.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    result = run("remediate", *words, str(path), env={"LEDGERD_URL": "http://127.0.0.1:1"})
    assert result.exit_code == 1
    assert said in result.output


def test_a_plan_that_is_not_there_is_wrong_usage(run: Run, configured: Path) -> None:
    assert run("remediate", "start", "nothing.json").exit_code == 2


def test_a_start_says_the_first_problem_and_where_to_see_the_others(run: Run, configured: Path) -> None:
    result = run("remediate", "start", plan(configured, step(target="x"), step(order=2, prompt="")))
    assert result.exit_code == 1
    assert result.stderr.startswith("error: steps[1].prompt: is empty (and 1 more: ledgerd remediate plan check ")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (SETTINGS.replace("master =", "mastre ="), "mastre"),
        (SETTINGS.replace('agent = "claude"', ""), "agent"),
        (SETTINGS.replace('"claude"', "7"), "agent"),
        (SETTINGS.replace('master = "platform"', 'prefix = "not good"'), "prefix"),
        (SETTINGS.replace('master = "platform"', "repairs_max = -1"), "repairs_max"),
    ],
)
def test_a_wrong_setting_is_named(run: Run, configured: Path, settings: str, said: str) -> None:
    (configured / "ledgerd.toml").write_text(settings)
    result = run("remediate", "plan", "check", plan(configured, step()))
    assert result.exit_code == 1
    assert result.stderr.startswith("error: remediation: ")
    assert said in result.stderr


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("", "remediation.master: no master is configured"),
        (SETTINGS.replace('master = "platform"', 'master = "nobody"'), "remediation.master: 'nobody' is none of"),
        (SETTINGS.replace("The Site", "PLATFORM"), "remediation.projects.web: 'PLATFORM' means 'platform', too"),
        (SETTINGS.replace('path = "web"', 'path = "gone"'), "remediation.projects.web.path: "),
    ],
)
def test_what_cannot_be_worked_with_is_said_before_anything_runs(
    run: Run, configured: Path, settings: str, said: str
) -> None:
    (configured / "ledgerd.toml").write_text(settings)
    result = run("remediate", "tick", env={"LEDGERD_URL": "http://127.0.0.1:1"})
    assert result.exit_code == 1
    assert said in result.stderr


def test_the_schema_is_printed(run: Run) -> None:
    result = run("remediate", "schema")
    assert (result.exit_code, json.loads(result.output)) == (0, plan_schema())


@pytest.mark.parametrize("words", [["approve"], ["resume"], ["start", "plan.json"], ["tick"], ["daemon"], ["show"]])
def test_an_agent_in_its_turn_is_told_that_the_owner_decides(
    run: Run, configured: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """The owner's token may lie where the agent's `ledgerd` would find it."""
    plan(configured, step())
    monkeypatch.setenv("LEDGERD_SESSION", "run-0123456789ab/step-1")
    result = run("remediate", *words)
    assert result.exit_code == 1
    assert "this is an agent's turn" in result.stderr
