"""The narrow git, against real repositories."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.daemons.sweep.config import GitKeys
from ledger.daemons.sweep.repository import GitFailed, GitRefused, Repository
from tests.unit.daemons.sweep.gits import bare, files_of, git, hook, own_world, repository


@pytest.fixture(autouse=True)
def _own_world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_world(monkeypatch, tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return repository(tmp_path / "register")


@pytest.fixture
def remote(tmp_path: Path, folder: Path) -> Path:
    remote = bare(tmp_path / "remote.git")
    git(folder, "remote", "add", "origin", str(remote))
    git(folder, "push", "--quiet", "origin", "main")
    return remote


def of(folder: Path, **keys: object) -> Repository:
    return Repository(folder, GitKeys(enabled=True, **keys), lambda text: text.replace("s3cret", "[REDACTED]"))


def elsewhere(tmp_path: Path, remote: Path, text: str, name: str = "README") -> str:
    """Somebody else pushes a commit; its id."""
    git(tmp_path, "clone", "--quiet", str(remote), "other")
    other = tmp_path / "other"
    (other / name).write_text(text)
    git(other, "add", name)
    git(other, "commit", "--quiet", "-m", "from elsewhere")
    git(other, "push", "--quiet", "origin", "main")
    return git(other, "rev-parse", "HEAD")


def test_a_commit_holds_the_files_it_was_given_and_others_stay_as_they_are(folder: Path) -> None:
    (folder / "staged").write_text("of somebody")
    git(folder, "add", "staged")
    (folder / "untracked").write_text("of somebody")
    (folder / "README").write_text("edited by somebody\n")
    (folder / "reports").mkdir()
    (folder / "reports" / "a.md").write_text("a")
    (folder / "incidents.md").write_text("b")
    commit = of(folder).commit([Path("incidents.md"), Path("reports/a.md")], "1 incident filed: 1 HIGH")
    assert commit == git(folder, "rev-parse", "HEAD")
    assert files_of(folder) == ["incidents.md", "reports/a.md"]
    assert git(folder, "log", "-1", "--format=%s|%an|%ae|%cn").startswith("1 incident filed: 1 HIGH|ledgerd sweep|")
    assert git(folder, "status", "--porcelain").splitlines() == ["M README", "A  staged", "?? untracked"]


def test_a_commit_of_nothing_new_is_the_commit_that_is_there(folder: Path) -> None:
    before = git(folder, "rev-parse", "HEAD")
    assert of(folder).commit([Path("README")], "nothing") == before


def test_the_first_commit_of_a_repository_works_and_ignored_files_are_ours(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    of(folder).make()
    (folder / ".gitignore").write_text("*.md\n")
    (folder / "incidents.md").write_text("a")
    of(folder).commit([Path("incidents.md")], "first")
    assert files_of(folder) == ["incidents.md"]


def test_names_are_names_and_never_patterns(folder: Path) -> None:
    (folder / "a*.md").write_text("a")
    (folder / "ab.md").write_text("of somebody")
    of(folder).commit([Path("a*.md")], "one")
    assert files_of(folder) == ["a*.md"]


def test_a_hook_that_fails_fails_the_commit_and_leaves_nothing_staged(folder: Path) -> None:
    hook(folder, "pre-commit", "echo no s3cret here >&2; exit 1")
    (folder / "new.md").write_text("a")
    with pytest.raises(GitFailed) as failed:
        of(folder).commit([Path("new.md")], "one")
    assert "no [REDACTED] here" in failed.value.detail
    assert git(folder, "status", "--porcelain") == "?? new.md"


def test_a_hook_that_fails_on_the_first_commit_leaves_nothing_staged_either(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    of(folder).make()
    hook(folder, "pre-commit", "exit 1")
    (folder / "new.md").write_text("a")
    with pytest.raises(GitFailed):
        of(folder).commit([Path("new.md")], "one")
    assert git(folder, "status", "--porcelain") == "?? new.md"


def test_a_hook_that_hangs_is_ended_and_git_leaves_no_lock(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ledger.daemons.sweep.repository.TIME_S", 1.0)
    hook(folder, "pre-commit", "exec sleep 60")
    (folder / "new.md").write_text("a")
    with pytest.raises(GitFailed, match="took longer than 1 s"):
        of(folder).commit([Path("new.md")], "one")
    monkeypatch.undo()
    hook(folder, "pre-commit", "exit 0")
    own_world(monkeypatch, folder.parent)
    of(folder).commit([Path("new.md")], "one")
    assert files_of(folder) == ["new.md"]


def test_a_push_takes_the_current_branch_and_nothing_else(folder: Path, remote: Path) -> None:
    git(folder, "branch", "private")
    git(folder, "tag", "-a", "v1", "-m", "a tag")
    git(folder, "config", "push.followTags", "true")
    git(folder, "config", "push.default", "matching")
    git(folder, "config", "remote.origin.mirror", "true")
    git(folder, "config", "remote.origin.push", "+refs/heads/*:refs/heads/*")
    (folder / "README").write_text("second\n")
    of(folder, push=True).commit([Path("README")], "second")
    assert of(folder, push=True).push()
    assert git(remote, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert git(remote, "rev-parse", "main") == git(folder, "rev-parse", "main")
    assert not of(folder, push=True).push()


def test_a_push_is_never_forced(tmp_path: Path, folder: Path, remote: Path) -> None:
    theirs = elsewhere(tmp_path, remote, "theirs\n")
    (folder / "README").write_text("ours\n")
    of(folder, push=True).commit([Path("README")], "ours")
    git(folder, "config", "remote.origin.push", "+refs/heads/main:refs/heads/main")
    with pytest.raises(GitFailed):
        of(folder, push=True).push()
    assert git(remote, "rev-parse", "main") == theirs


def test_a_pull_forwards_or_puts_our_commits_on_top(tmp_path: Path, folder: Path, remote: Path) -> None:
    theirs = elsewhere(tmp_path, remote, "theirs\n")
    of(folder, push=True).pull()
    assert git(folder, "rev-parse", "HEAD") == theirs
    (tmp_path / "other").rename(tmp_path / "gone")
    theirs = elsewhere(tmp_path, remote, "theirs", "their-file")
    (folder / "ours").write_text("ours")
    of(folder, push=True).commit([Path("ours")], "ours")
    of(folder, push=True).pull()
    assert git(folder, "rev-parse", "HEAD~1") == theirs
    assert of(folder, push=True).push()


def test_a_pull_that_needs_a_person_changes_nothing(tmp_path: Path, folder: Path, remote: Path) -> None:
    elsewhere(tmp_path, remote, "theirs\n")
    (folder / "README").write_text("ours\n")
    ours = of(folder, push=True).commit([Path("README")], "ours")
    with pytest.raises(GitFailed, match="different ways"):
        of(folder, push=True).pull()
    assert git(folder, "rev-parse", "HEAD") == ours
    assert git(folder, "status", "--porcelain", "--branch").splitlines()[0].startswith("## main")


def test_a_remote_without_the_branch_is_pulled_from_and_pushed_to(tmp_path: Path, folder: Path) -> None:
    remote = bare(tmp_path / "empty.git")
    git(folder, "remote", "add", "origin", str(remote))
    of(folder, push=True).pull()
    assert of(folder, push=True).push()
    assert git(remote, "rev-parse", "main") == git(folder, "rev-parse", "main")


def test_what_the_remote_is_expected_to_be_lets_it_through(folder: Path, remote: Path) -> None:
    of(folder, push=True, expected_remote_url=str(remote)).check()


REPOINTED = {
    "another url": ["remote", "set-url", "origin", "https://token:s3cret@example.org/x.git"],
    "another url to push to": ["remote", "set-url", "--push", "origin", "/elsewhere.git"],
    "a second url to push to": ["remote", "set-url", "--add", "--push", "origin", "/elsewhere.git"],
    "a second url": ["remote", "set-url", "--add", "origin", "/elsewhere.git"],
    "a rewritten url": ["config", "url./elsewhere/.insteadOf", "/"],
    "a rewritten url to push to": ["config", "url./elsewhere/.pushInsteadOf", "/"],
    "no remote": ["remote", "remove", "origin"],
}


@pytest.mark.parametrize("how", REPOINTED)
def test_a_repointed_remote_is_refused(folder: Path, remote: Path, how: str) -> None:
    git(folder, *REPOINTED[how])
    repo = of(folder, push=True, expected_remote_url=str(remote))
    for act in (repo.check, repo.pull, repo.push):
        with pytest.raises(GitRefused, match="refusing") as refused:
            act()
        assert "s3cret" not in refused.value.detail
    assert git(remote, "for-each-ref", "--format=%(refname)") == "refs/heads/main"


REPOINTED_MEANWHILE = {
    name: words for name, words in REPOINTED.items() if name not in ("another url", "no remote")
} | {
    "another url": ["remote", "set-url", "origin", "EVIL"],
    "the url itself rewritten": ["config", "url.EVIL.insteadOf", "REMOTE"],
    "the url itself rewritten to push to": ["config", "url.EVIL.pushInsteadOf", "REMOTE"],
    "everything rewritten": ["config", "url.EVIL?.pushInsteadOf", ""],
    "another program at the other end": [
        "config",
        "remote.origin.receivepack",
        "touch EVIL/touched; git-receive-pack",
    ],
}


@pytest.mark.parametrize("how", REPOINTED_MEANWHILE)
def test_a_remote_that_is_repointed_behind_the_check_changes_nothing_of_what_is_pushed_where(
    tmp_path: Path, folder: Path, remote: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    evil = bare(tmp_path / "evil.git")
    (folder / "README").write_text("second\n")
    repo = of(folder, push=True, expected_remote_url=str(remote))
    repo.commit([Path("README")], "second")
    words = [word.replace("EVIL", str(evil)).replace("REMOTE", str(remote)) for word in REPOINTED_MEANWHILE[how]]
    real = repo._refuse_other_remote

    def checked_and_then_repointed() -> None:
        real()
        git(folder, *words)

    monkeypatch.setattr(repo, "_refuse_other_remote", checked_and_then_repointed)
    repo.push()
    assert git(remote, "rev-parse", "main") == git(folder, "rev-parse", "main")
    assert git(folder, "rev-parse", "origin/main") == git(folder, "rev-parse", "main")
    assert git(evil, "for-each-ref") == ""
    assert not (evil / "touched").exists()


def test_what_is_pulled_comes_from_the_expected_remote_whatever_is_set_meanwhile(
    tmp_path: Path, folder: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = elsewhere(tmp_path, remote, "theirs\n")
    evil = bare(tmp_path / "evil.git")
    git(tmp_path / "other", "push", "--quiet", str(evil), "HEAD~1:refs/heads/main")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "user.ours")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "stays")
    repo = of(folder, push=True, expected_remote_url=str(remote))
    real = repo._refuse_other_remote

    def checked_and_then_repointed() -> None:
        real()
        git(folder, "remote", "set-url", "origin", str(evil))

    monkeypatch.setattr(repo, "_refuse_other_remote", checked_and_then_repointed)
    repo.pull()
    assert git(folder, "rev-parse", "HEAD") == theirs == git(folder, "rev-parse", "origin/main")
    assert repo._git("config", "user.ours").stdout == b"stays\n"


def test_a_repository_behind_a_link_is_refused(tmp_path: Path, folder: Path) -> None:
    other = repository(tmp_path / "other")
    (folder / ".git").rename(tmp_path / "moved")
    (folder / ".git").symlink_to(other / ".git")
    with pytest.raises(GitRefused, match="is a link"):
        of(folder).check()


def test_submodules_are_left_alone_whatever_the_settings_say(tmp_path: Path, folder: Path, remote: Path) -> None:
    """A submodule's URL is a place that whoever can push to the register names."""
    module = repository(tmp_path / "module")
    git(tmp_path, "clone", "--quiet", str(remote), "other")
    git(tmp_path / "other", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(module), "module")
    git(tmp_path / "other", "commit", "--quiet", "-m", "a submodule")
    git(tmp_path / "other", "push", "--quiet", "origin", "main")
    for setting in ("submodule.recurse", "fetch.recurseSubmodules", "push.recurseSubmodules"):
        git(folder, "config", setting, "on-demand" if setting.startswith("push") else "true")
    repo = of(folder, push=True)
    repo.pull()
    assert list((folder / "module").iterdir()) == []
    (folder / "README").write_text("second\n")
    repo.commit([Path("README")], "second")
    assert repo.push()
    assert not (folder / ".git" / "modules").exists()


def test_no_repository_no_branch_or_another_branch_is_refused(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(GitRefused, match="in no git repository"):
        of(tmp_path / "plain").check()
    with pytest.raises(GitRefused, match="in no git repository"):
        of(tmp_path / "missing").check()
    with pytest.raises(GitRefused, match="on branch main, not incidents"):
        of(folder, branch="incidents").check()
    with pytest.raises(GitRefused, match="no remote origin"):
        of(folder, push=True).check()
    git(folder, "checkout", "--quiet", "--detach")
    with pytest.raises(GitRefused, match="on no branch"):
        of(folder).check()
    with pytest.raises(GitFailed, match="on no branch"):
        of(folder, push=True).push()


def test_the_environment_of_another_repository_counts_for_nothing(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = repository(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    monkeypatch.setenv("GIT_COMMON_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_GLOB_PATHSPECS", "1")  # which git refuses beside --literal-pathspecs
    (folder / "README").write_text("second\n")
    commit = of(folder).commit([Path("README")], "second")
    monkeypatch.undo()
    assert git(folder, "rev-parse", "HEAD") == commit
    assert not (tmp_path / "index").exists()
