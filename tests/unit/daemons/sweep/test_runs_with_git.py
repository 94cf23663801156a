"""Whole runs whose register is a repository: what is committed, pushed and refused, and what comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.daemons.sweep.gits import bare, files_of, git, hook, own_world, repository
from tests.unit.daemons.sweep.worlds import World

GIT = "[git]\nenabled = true\n"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    own_world(monkeypatch, tmp_path)
    world = World(tmp_path / "home")
    world.configure(GIT)
    repository(world.register)
    return world


@pytest.fixture
def remote(world: World, tmp_path: Path) -> Path:
    remote = bare(tmp_path / "remote.git")
    git(world.register, "remote", "add", "origin", str(remote))
    git(world.register, "push", "--quiet", "origin", "main")
    world.configure(f'{GIT}push = true\nexpected_remote_url = "{remote}"\n')
    return remote


def subjects(folder: Path) -> list[str]:
    return git(folder, "log", "--format=%s").splitlines()


def test_a_run_commits_what_it_wrote_with_its_headline_as_subject(world: World) -> None:
    (world.register / "draft.md").write_text("of somebody")
    world.damage("one")
    world.run()
    assert subjects(world.register) == ["1 incident filed: 1 HIGH", "first"]
    assert files_of(world.register) == ["incidents.md", "index.json", "latest.md", "reports/2026-03-09.md"]
    assert git(world.register, "status", "--porcelain") == "?? draft.md"


def test_a_failed_commit_records_no_judged_session_and_is_made_good_without_another_judge(world: World) -> None:
    hook(world.register, "pre-commit", "exit 1")
    world.damage("one")
    world.clean("two")
    ended = world.run()
    assert ended.status == "failed"
    assert ended.headline.startswith("the commit failed")
    assert (world.seen(), world.filed()) == ({"two": "clean"}, [])
    hook(world.register, "pre-commit", "exit 0")
    ended = world.run()
    assert (ended.status, ended.headline) == ("ok", "1 incident filed: 1 HIGH")
    assert (world.seen(), world.filed()) == ({"one": "judged", "two": "clean"}, ["Damage in one"])
    assert subjects(world.register) == ["1 incident filed: 1 HIGH", "first"]
    assert git(world.register, "status", "--porcelain") == ""
    assert len(world.asked) == 1


def test_a_failed_push_records_the_sessions_and_the_next_quiet_run_pushes(
    world: World, remote: Path, tmp_path: Path
) -> None:
    hook(world.register, "pre-push", "exit 1")
    world.damage("one")
    ended = world.run()
    assert ended.status == "failed"
    assert ended.headline.startswith("1 incident filed: 1 HIGH; then git push failed")
    assert (world.seen(), world.filed()) == ({"one": "judged"}, ["Damage in one"])
    assert subjects(remote) == ["first"]
    hook(world.register, "pre-push", "exit 0")
    assert world.run().status == "quiet"
    assert subjects(remote) == ["1 incident filed: 1 HIGH", "first"]
    assert len(world.asked) == 1


def test_a_repointed_remote_is_refused_before_anything_is_read_or_written(
    world: World, remote: Path, tmp_path: Path
) -> None:
    world.damage("one")
    git(world.register, "remote", "set-url", "--push", "origin", str(bare(tmp_path / "evil.git")))
    before = world.tree()
    ended = world.run()
    assert ended.status == "failed"
    assert ended.headline.startswith("refusing: the remote origin is ")
    assert world.tree() == before


def test_what_others_pushed_is_there_before_anything_is_written(world: World, remote: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", str(remote), "other")
    (tmp_path / "other" / "incidents.md").write_text("# Ours\n\n## Damage in one · 2026-01-01 · LOW\n\nBy hand.\n")
    git(tmp_path / "other", "add", "incidents.md")
    git(tmp_path / "other", "commit", "--quiet", "-m", "by hand")
    git(tmp_path / "other", "push", "--quiet", "origin", "main")
    world.damage("one")
    assert world.run().headline == "0 incidents filed; 1 known already"
    assert subjects(remote)[1:] == ["by hand", "first"]


def test_what_a_person_is_writing_is_committed_only_with_what_the_sweep_files(world: World) -> None:
    world.damage("one")
    world.run()
    path = world.register / "incidents.md"
    path.write_text(path.read_text() + "## Notes\n\nHalf a thought\n")
    world.damage("two")
    world.judge_does("exclude")
    assert world.run().headline == "0 incidents filed; 1 candidate excluded"
    assert files_of(world.register) == ["latest.md", "reports/2026-03-09-2.md"]
    assert "M incidents.md" in git(world.register, "status", "--porcelain")


def test_a_link_in_the_register_is_refused_before_any_file_is_written(world: World, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (world.register / "reports").symlink_to(tmp_path / "elsewhere")
    world.damage("one")
    ended = world.run()
    assert ended.status == "failed"
    assert "a link, or something else than a folder, is in its way" in ended.headline
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert sorted(path.name for path in world.register.iterdir()) == [".git", "README", "reports"]
    (world.register / "reports").unlink()
    assert world.run().headline == "1 incident filed: 1 HIGH"
    assert len(world.asked) == 1


def test_a_detached_head_is_refused(world: World) -> None:
    git(world.register, "checkout", "--quiet", "--detach")
    world.damage("one")
    before = world.tree()
    assert world.run().headline.endswith("is on no branch")
    assert world.tree() == before
