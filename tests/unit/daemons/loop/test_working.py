from __future__ import annotations

from pathlib import Path

import pytest

from ledger.daemons.loop import git, working
from ledger.daemons.loop.config import read_setup
from projections.loop_state import Round, Verdict
from tests.unit.daemons.loop.bench import FAIL, Bench


def prompt(bench: Bench, text: str, **fields: object) -> str:
    one = Round(3, task="Fix {output} and {tick}.")
    more = {"role": "verify", "cwd": Path("/p"), "artifact": "", "before": None} | fields
    return working.prompt_text(bench.folder, text, one, **more)  # type: ignore[arg-type]


def test_a_prompt_is_given_what_it_asks_for_and_what_was_put_in_is_text(bench: Bench) -> None:
    said = prompt(bench, 'Round {tick} of {loop} as {role} in {cwd}: {task} {"json": 1} {other}')
    assert said == 'Round 3 of l as verify in /p: Fix {output} and {tick}. {"json": 1} {other}'
    assert prompt(bench, "{task} {verdict}").endswith("There was none.")
    verdict = Verdict(False, 0.5, ("a",))
    assert prompt(bench, "{task} {verdict}", before=verdict).endswith(
        '{"pass": false, "score": 0.5, "reasons": ["a"]}'
    )


def test_a_prompt_without_a_place_for_the_task_is_told_it_all_the_same(bench: Bench) -> None:
    assert prompt(bench, "Verify.\n") == "Verify.\n\n## Task\n\nFix {output} and {tick}.\n"


def test_the_default_is_the_first_known_agent_on_the_path_with_the_prompt_as_one_element(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.configure(harness={"command": None})
    monkeypatch.setenv("PATH", str(tmp_path))
    codex = tmp_path / "codex"
    codex.write_text("#!/bin/sh\n")
    codex.chmod(0o755)
    words = working.command(read_setup(bench.folder), "Do it.")
    assert (words[:2], words[-1]) == (("codex", "exec"), "{prompt_content}")
    assert "-" not in words
    for one_that_is_no_argument in ("- a list", "x" * 200_000):
        assert working.command(read_setup(bench.folder), one_that_is_no_argument) == "codex"


def test_a_known_agent_may_be_named_and_any_other_words_are_taken_as_they_are(bench: Bench) -> None:
    bench.configure(harness={"command": "gemini"})
    assert working.command(read_setup(bench.folder), "Do it.")[0] == "gemini"
    bench.configure(harness={"command": "gemini --yolo {prompt}"})
    assert working.command(read_setup(bench.folder), "Do it.") == ("gemini", "--yolo", "{prompt}")


def test_a_round_keeps_the_task_that_it_began_with(bench: Bench) -> None:
    seen = bench.scripts / "seen"
    bench.task("The first.").agent("verify", f"cat $1 >> {seen}; {FAIL}")
    with bench.while_it_runs("implement", lambda: bench.task("The second.")):
        bench.tick()
    bench.agent("implement", "true").tick()
    assert seen.read_text() == "You verify: The first.\nYou verify: The second.\n"
    assert [one["task"] for _, one in bench.events("tick.started")] == ["The first.", "The second."]


def test_git_is_not_told_our_token_and_runs_no_hook_of_the_repository(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.repository()
    hook = bench.project / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {bench.scripts}/hooked\n")
    hook.chmod(0o755)
    monkeypatch.setenv("LEDGERD_TOKEN", "secret")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    git.add_worktree(bench.project, bench.folder.worktree, "loop/l")
    assert (bench.folder.worktree / "README.md").exists()
    assert not (bench.scripts / "hooked").exists()
    shown = git.git(bench.project, "-c", "alias.env=!env", "env").decode()
    assert "secret" not in shown
    assert "GIT_DIR=/nowhere" not in shown
