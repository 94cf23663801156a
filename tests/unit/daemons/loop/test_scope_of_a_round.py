from __future__ import annotations

import pytest

from ledger.daemons.loop import snapshots
from ledger.daemons.loop.folders import InvalidLoop
from ledger.daemons.loop.scopes import outside
from ledger.daemons.loop.snapshots import read_snapshot, take, touched
from tests.unit.daemons.loop.bench import FAIL, Bench

COMMIT = "git -c user.name=t -c user.email=t@example.org commit --quiet -m it"


@pytest.mark.parametrize(
    ("does", "named"),
    [
        ("echo x > src/new.py", []),
        ("echo x >> README.md", ["README.md"]),
        ("echo x > 'new file'", ["new file"]),
        ("rm README.md", ["README.md"]),
        ("chmod +x README.md", ["README.md"]),
        ("git mv README.md src/README.md", ["README.md"]),
        ("mv src/a.py a.py", ["a.py"]),
        ("ln -sf /dev/null README.md", ["README.md"]),
        (f"echo x >> README.md; git add .; {COMMIT}", ["README.md"]),
        (f"echo x >> README.md; git add .; {COMMIT}; git revert --no-commit HEAD; {COMMIT}", ["README.md"]),
        (f"echo x > extra; git add .; {COMMIT}; git rm --quiet extra; {COMMIT}", ["extra"]),
        ("echo x > hidden; echo hidden >> .git/info/exclude", [".git/info/exclude"]),
        ("echo 'true' > .git/hooks/post-commit", [".git/hooks/post-commit"]),
        ("git config core.hooksPath /tmp", [".git/config"]),
        ("echo ignored.log > src/.gitignore; touch src/ignored.log", []),
    ],
)  # fmt: skip
def test_what_a_round_touched_outside_of_its_scope_halts_the_loop_and_is_named(
    bench: Bench, does: str, named: list[str]
) -> None:
    """All of it by one look before and one after, as around the implementing agent."""
    bench.repository()
    before = take(bench.project)
    bench.sh(does)
    names = touched(bench.project, before, take(bench.project))
    assert outside(names, ["src/"]) == named


def test_what_a_round_touched_in_a_repository_inside_is_named_too(bench: Bench) -> None:
    bench.repository().sh("git init -q lib && echo b > lib/b.py && cd lib && git init -q deep && echo c > deep/c.py")
    before = take(bench.project)
    bench.sh("echo x >> lib/b.py; echo x >> lib/deep/c.py; ln -s / lib/root")
    names = touched(bench.project, before, take(bench.project))
    assert outside(names, ["src/"]) == ["lib/b.py", "lib/deep/c.py", "lib/root"]


def test_a_round_that_leaves_its_scope_halts_before_the_verifier_runs(bench: Bench) -> None:
    bench.repository().configure(blast_radius={"file_scope": ["src/"]}).task()
    bench.agent("implement", "echo x >> README.md; echo x >> src/a.py")
    summary = bench.tick()
    assert (summary.reason, summary.halted, summary.iter) == ("scope_violation", True, 0)
    assert bench.calls == ["implement"]
    [(_, halt)] = bench.events("loop.halted")
    assert (halt["files"], halt["tick"]) == (["README.md"], 1)


def test_what_was_changed_before_the_round_is_not_the_rounds(bench: Bench) -> None:
    bench.repository().configure(blast_radius={"file_scope": ["src/"]}).task()
    (bench.project / "README.md").write_text("A person is at work here.\n")
    bench.agent("implement", "echo x >> src/a.py")
    assert bench.tick().iter == 1
    assert not bench.folder.base(1).exists()


def test_without_git_all_files_are_watched(bench: Bench) -> None:
    (bench.project / "notes.txt").write_text("a\n")
    bench.configure(blast_radius={"file_scope": ["*.py"]}).task()
    bench.agent("implement", "echo b > notes.txt; touch -d 2001-01-01 notes.txt; echo 1 > a.py")
    bench.tick()
    halt = bench.loop.halt
    assert halt is not None
    assert (halt.reason, halt.files) == ("scope_violation", ("notes.txt",))


def test_a_repository_that_the_agent_took_away_is_no_way_out_of_the_scope(bench: Bench) -> None:
    bench.repository().configure(blast_radius={"file_scope": ["src/"]}).task()
    bench.agent("implement", "rm -rf .git; echo x >> README.md")
    assert bench.tick().reason == "scope_violation"
    halt = bench.loop.halt
    assert halt is not None
    assert "README.md" in halt.files


def test_a_folder_that_holds_too_much_to_watch_is_refused_before_any_agent_runs(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "FILES_MAX", 3)
    for n in range(4):
        (bench.project / f"{n}.txt").write_text("x")
    bench.configure(blast_radius={"file_scope": ["*.py"]}).task()
    with pytest.raises(InvalidLoop, match="more than can be watched"):
        bench.tick()
    assert bench.calls == []


def test_two_rounds_that_changed_nothing_hold_the_loop_where_that_is_asked_for(bench: Bench) -> None:
    bench.repository().roles("verify").configure(brakes={"no_progress": True}).task().agent("verify", FAIL)
    assert [bench.tick().reason for _ in range(3)] == [None, None, "no_progress"]


def test_a_round_that_changed_something_is_progress(bench: Bench) -> None:
    bench.repository().configure(brakes={"no_progress": True}).task().agent("verify", FAIL)
    bench.agent("implement", "date +%N >> src/a.py")
    assert [bench.tick().reason for _ in range(3)] == [None, None, None]


def test_a_snapshot_is_the_same_after_it_was_written_and_read(bench: Bench) -> None:
    snapshot = take(bench.repository().project)
    assert read_snapshot(snapshot.text()) == snapshot


def test_agents_work_in_a_worktree_on_a_branch_that_is_recorded(bench: Bench) -> None:
    bench.repository().configure(blast_radius={"use_worktree": True, "file_scope": ["src/"]}).task()
    bench.agent("implement", f"echo x >> src/new.py; git add .; {COMMIT}")
    assert bench.tick().iter == 1
    assert not (bench.project / "src" / "new.py").exists()
    assert bench.git("show", "loop/l:src/new.py") == "x\n"
    assert bench.state()["worktree_branch"] == "loop/l"
    assert bench.state()["worktree_path"] == str(bench.folder.worktree)
    assert bench.tick().iter == 2
    assert len(bench.events("loop.worktree")) == 1
    status = bench.git("status", "--porcelain", "--untracked-files=all")
    assert not [line for line in status.splitlines() if "worktrees" in line or "outbox" in line or "outputs" in line]


def test_a_worktree_without_a_repository_is_refused(bench: Bench) -> None:
    bench.configure(blast_radius={"use_worktree": True}).task()
    with pytest.raises(InvalidLoop, match="no git repository"):
        bench.tick()
    assert bench.calls == []
