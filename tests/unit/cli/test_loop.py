from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from ledger.cli.loop import TEMPLATES
from ledger.cli.loop_shown import print_loop, sparkline
from ledger.daemons.loop.handling import templates

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGERD_URL", "http://127.0.0.1:9")
    monkeypatch.delenv("LEDGERD_LOOP_ROLE", raising=False)


def test_the_templates_that_are_offered_are_those_that_there_are() -> None:
    assert list(TEMPLATES) == templates()


def test_an_unknown_loop_is_quiet_and_leaves_nothing_behind(run: Run, tmp_path: Path) -> None:
    for mode in ("tick", "daemon"):
        done = run("loop", "run", "--mode", mode, "--loop", "nosuch", "--json")
        assert done.exit_code == 0
        assert json.loads(done.stdout.splitlines()[-1]) == {
            "loop": "nosuch", "skipped": True, "halted": False, "reason": "untracked", "iter": 0, "verdict": None,
        }  # fmt: skip
    assert not (tmp_path / ".ledgerd").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("--mode", "nope", "--loop", "l"),
        ("--mode", "tick"),
        ("--loop", "l", "--interval", "-1"),
        ("--loop", "l", "--max-iterations", "0"),
        ("--loop", "../l"),
        ("--loop", "l", "--project", "nosuch"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(run: Run, words: tuple[str, ...]) -> None:
    assert run("loop", "run", *words).exit_code == 2


def test_a_typo_in_loop_json_is_a_failure_that_names_the_key(run: Run, tmp_path: Path) -> None:
    run("loop", "init", "l")
    config = tmp_path / ".ledgerd" / "loops" / "l" / "loop.json"
    config.write_text('{"brakes": {"max_iteration": 1}}')
    for mode in ("tick", "daemon"):
        done = run("loop", "run", "--mode", mode, "--loop", "l")
        assert done.exit_code == 1
        assert "brakes.max_iteration is no key of a loop" in done.stderr
        assert "hint: Did you mean 'max_iterations'?" in done.stderr


def test_a_person_makes_sets_halts_resumes_and_looks_at_a_loop(run: Run) -> None:
    assert "next: ledgerd loop task l" in run("loop", "init", "l").stdout
    assert run("loop", "init", "l").exit_code == 1
    assert run("loop", "task", "l", "Do it.").stdout == "l works on: Do it.\n"
    assert run("loop", "halt", "l", "--reason", "lunch").stdout == "l is halted\n"
    done = run("loop", "run", "--loop", "l", "--json")
    assert (done.exit_code, json.loads(done.stdout)["reason"]) == (0, "halted:human_intervention")
    shown = run("loop", "show", "l").stdout
    assert "halted since" in shown
    assert "lunch" in shown
    assert run("loop", "halt", "l").stdout == "l stands already\n"
    assert run("loop", "resume", "l").stdout == "l runs\n"
    view = json.loads(run("loop", "show", "l", "--json").stdout)
    assert (view["status"], view["current_task"], view["resumed_count"]) == ("running", "Do it.", 1)


@pytest.mark.parametrize("command", [("halt", "l"), ("resume", "l"), ("show", "l"), ("task", "l", "t")])
def test_a_loop_that_is_not_there_is_a_failure_for_a_person(run: Run, command: tuple[str, ...]) -> None:
    done = run("loop", *command)
    assert (done.exit_code, "no loop 'l'" in done.stderr) == (1, True)


def test_what_agents_wrote_controls_no_terminal(
    capsys: pytest.CaptureFixture[str], on_a_terminal: Callable[[int], None]
) -> None:
    on_a_terminal(100)
    evil = "\x1b]0;owned\x07[red]\x1b[2J"
    halt = {"halt_reason": evil, "sentence": "S.", "detail": evil, "at": "2026-01-01T00:00:00Z", "reason": evil}
    verdict = {"pass": False, "score": 0.5, "reasons": [evil]}
    one = {"tick": 1, "started_at": "2026-01-01T00:00:00Z", "outcome": "failing", "verdict": verdict, "halt": None}
    print_loop(
        {
            "name": evil, "status": "halted", "description": evil, "current_task": evil, "halt": halt,
            "held_by": evil, "held_sentence": evil, "iteration_count": 1, "agent_seconds": 5, "cost_usd": 0.5,
            "usage": {"unpriced": {"m": {}}}, "resumed_count": 1, "worktree_branch": evil,
            "brakes": [{"reason": "max_iterations", "value": 1, "limit": 0, "unit": "rounds", "holds": True}],
            "scores": [{"score": 0.5}], "rounds": [one, {**one, "halt": halt, "verdict": None}],
        }
    )  # fmt: skip
    out = capsys.readouterr().out
    assert "owned" not in out
    assert "\x1b[2J" not in out
    assert "[red]" in out


def test_scores_are_bars_between_the_least_and_the_greatest() -> None:
    assert sparkline([0, 0.5, 1]) == "▁▅█"
    assert sparkline([0.3, 0.3]) == "▅▅"
