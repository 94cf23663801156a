"""What git says of a project, in a repository that an agent may have written to."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ledger.daemons.remediation import repositories
from ledger.daemons.remediation.repositories import DIFF_CHARS_MAX, NEW_FILE_CHARS_MAX, Git


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    (folder / "kept").write_text("old\n")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "begun")
    return folder


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def test_a_diff_tells_what_was_committed_what_was_not_and_what_is_new(repository: Path) -> None:
    began = Git().head(repository)
    assert began is not None
    (repository / "made").write_text("by a commit\n")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "more")
    (repository / "kept").write_text("changed\n")
    (repository / "new.txt").write_text("not added\n")
    (repository / "picture").write_bytes(b"\x00\x01")
    diff = Git().diff(repository, began)
    for part in (
        "+by a commit",
        "-old\n+changed",
        "new: new.txt\nnot added",
        "new: picture (binary)",
        "2 files changed",
    ):
        assert part in diff
    assert Git().head(repository) != began


def test_a_diff_is_bounded(repository: Path) -> None:
    began = Git().head(repository)
    assert began is not None
    (repository / "kept").write_text("x\n" * DIFF_CHARS_MAX)
    (repository / "new").write_text("y" * 10 * NEW_FILE_CHARS_MAX)
    assert len(Git().diff(repository, began)) < DIFF_CHARS_MAX + 100


def test_a_folder_without_a_repository_has_no_commit_and_no_diff(tmp_path: Path) -> None:
    assert Git().head(tmp_path) is None
    assert Git().diff(tmp_path, "c0ffee") == "(git could not say what was changed)"
    assert Git().head(tmp_path / "gone") is None


def test_a_repository_before_its_first_commit_has_none(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    assert Git().head(tmp_path) is None


def test_nothing_that_an_agent_configured_is_run(repository: Path) -> None:
    began = Git().head(repository)
    assert began is not None
    ran = repository.parent / "ran"
    program = repository.parent / "program"
    program.write_text(f"#!/bin/sh\ntouch '{ran}'\n")
    program.chmod(0o755)
    for key in ("core.fsmonitor", "diff.external", "core.pager", "diff.evil.textconv", "diff.evil.command"):
        git(repository, "config", key, str(program))
    (repository / ".git" / "info" / "attributes").write_text("* diff=evil\n")
    (repository / "kept").write_text("changed\n")
    assert "+changed" in Git().diff(repository, began)
    assert not ran.exists()


def test_a_link_is_named_and_not_followed(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a secret")
    (repository / "link").symlink_to(tmp_path / "secret")
    diff = Git().diff(repository, str(Git().head(repository)))
    assert "new: link" in diff
    assert "a secret" not in diff


FILTERS = {"plain": "clean", "a=b": "clean", "long": "process", "from-a-file": "clean"}


def test_no_filter_of_the_repository_sees_its_contents(repository: Path) -> None:
    for name in FILTERS:
        (repository / name).write_text("old\n")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "more")
    began = str(Git().head(repository))
    ran, program, more = (repository.parent / name for name in ("ran", "program", "more"))
    program.write_text(f"#!/bin/sh\ntouch '{ran}'\ncat\n")
    program.chmod(0o755)
    for name, how in FILTERS.items():
        file = ("--file", str(more)) if name == "from-a-file" else ()
        git(repository, "config", *file, f"filter.{name}.{how}", str(program))
        git(repository, "config", *file, f"filter.{name}.required", "true")
        (repository / name).write_text("new\n")
    git(repository, "config", "include.path", str(more))
    (repository / ".git" / "info" / "attributes").write_text("".join(f"{name} filter={name}\n" for name in FILTERS))
    assert Git().diff(repository, began).count("-old\n+new") == len(FILTERS)
    assert not ran.exists()


def test_git_finds_no_token_of_ours(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "git"
    program.write_text(f"#!/bin/sh\nenv > '{tmp_path}/seen'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("LEDGERD_TOKEN", "an-owners")
    Git().head(repository)
    assert "an-owners" not in (tmp_path / "seen").read_text()


def test_of_more_than_there_is_memory_for_only_the_beginning_is_read(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = str(Git().head(repository))
    monkeypatch.setattr(repositories, "OUTPUT_BYTES_MAX", 1000)
    (repository / "kept").write_text("x" * 999 + "\n" * 2**18)
    diff = Git().diff(repository, began)
    assert diff.startswith(" kept | ")
    assert len(diff) <= 1000
