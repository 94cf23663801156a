from __future__ import annotations

import json

import pytest

from ledger.daemons.loop import handling
from ledger.daemons.loop.folders import InvalidLoop, LoopFolder
from ledger.errors import Conflict, InvalidField, NotFound
from tests.unit.daemons.loop.bench import FAIL, Bench


def test_a_new_loop_is_there_with_its_prompts_its_views_and_its_session(bench: Bench) -> None:
    folder = LoopFolder(bench.project, "new")
    files = handling.init(folder, bench.saddle, "docs")
    assert files == ["implement.md", "verify.md", "loop.json"]
    assert json.loads(folder.config.read_text())["blast_radius"]["file_scope"] == ["*.md", "*.rst", "docs/"]
    assert json.loads(folder.state_view.read_text())["name"] == "new"
    assert handling.look(folder, bench.saddle).brakes.stop_on_pass
    assert "/loops/*/outputs/" in (folder.ledgerd / ".gitignore").read_text().splitlines()


def test_a_loop_that_is_there_is_not_made_again(bench: Bench) -> None:
    before = bench.folder.config.read_text()
    with pytest.raises(Conflict, match="is there already"):
        handling.init(bench.folder, bench.saddle)
    assert bench.folder.config.read_text() == before


def test_a_loop_that_is_made_anew_under_an_old_name_begins_from_nothing(bench: Bench) -> None:
    bench.roles("verify").task().tick()
    bench.folder.config.unlink()
    (bench.folder.home / "verify.md").write_text("Mine.")
    handling.init(bench.folder, bench.saddle)
    loop = bench.loop
    assert (loop.iteration_count, loop.current_task) == (0, None)
    assert (bench.folder.home / "verify.md").read_text() == "Mine."


def test_what_git_is_to_leave_alone_is_added_to_what_stands_there(bench: Bench) -> None:
    ignore = bench.folder.ledgerd / ".gitignore"
    ignore.write_text("mine")
    bench.folder.make()
    lines = ignore.read_text().splitlines()
    bench.folder.make()
    assert ignore.read_text().splitlines() == lines
    assert lines[0] == "mine"
    assert "/outbox.db*" in lines


def test_a_loop_that_is_not_there_is_said_to_be_missing_and_not_made(bench: Bench) -> None:
    folder = LoopFolder(bench.project, "nosuch")
    for handle in (handling.halt, handling.resume, handling.look):
        with pytest.raises(NotFound, match="no loop 'nosuch'"):
            handle(folder, bench.saddle)
    assert not folder.home.exists()


def test_a_loop_whose_loop_json_is_broken_can_be_halted_and_looked_at(bench: Bench) -> None:
    bench.task()
    bench.folder.config.write_text("{")
    assert handling.halt(bench.folder, bench.saddle)
    assert handling.look(bench.folder, bench.saddle).halt is not None


def test_a_loop_that_cannot_be_read_leaves_nothing_behind(bench: Bench) -> None:
    bench.folder.config.write_text("{")
    with pytest.raises(InvalidLoop, match="no JSON"):
        handling.halt(bench.folder, bench.saddle)
    assert not bench.folder.outbox.exists()


@pytest.mark.parametrize("task", ["", " \n", "x" * (handling.TASK_CHARS_MAX + 1)])
def test_a_task_that_says_nothing_or_too_much_is_refused(bench: Bench, task: str) -> None:
    with pytest.raises(InvalidField, match="task"):
        bench.task(task)


def test_halting_twice_is_one_halt_and_resuming_what_runs_is_nothing(bench: Bench) -> None:
    assert handling.halt(bench.folder, bench.saddle)
    assert not handling.halt(bench.folder, bench.saddle)
    assert bench.state()["status"] == "halted"
    for _ in range(2):
        assert handling.resume(bench.folder, bench.saddle) is None
    assert (bench.state()["status"], bench.state()["resumed_count"]) == ("running", 1)


def test_a_resume_forgets_a_plateau_but_not_the_number_of_rounds(bench: Bench) -> None:
    bench.roles("verify").configure(brakes={"max_iterations": 2, "score_plateau_window": 1}).task()
    bench.agent("verify", FAIL).tick()
    assert bench.tick().reason == "score_plateau"
    assert handling.resume(bench.folder, bench.saddle) is None
    assert bench.tick().iter == 2
    assert handling.resume(bench.folder, bench.saddle) == "max_iterations"
    assert len(bench.loop.resumes) == 1
