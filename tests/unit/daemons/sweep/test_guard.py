"""The write guard, attacked: whatever leads elsewhere is refused before a byte is written."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ledger.daemons.sweep.guard import NotWritten, WriteGuard, WriteRefused
from ledger.daemons.sweep.locking import locked
from tests.unit.daemons.sweep.owners import lowered_rights, needs_root


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A register's folder, a look-alike beside it, a secret elsewhere."""
    (tmp_path / "register" / "reports").mkdir(parents=True)
    (tmp_path / "register-old").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret").write_text("secret")
    (tmp_path / "state").mkdir()
    return tmp_path


@pytest.fixture
def guard(world: Path) -> WriteGuard:
    return WriteGuard([world / "register"], [world / "state" / "sweep.db", world / "list" / "seen.txt"])


def tree(folder: Path) -> dict[str, str]:
    """All files below a folder with what they hold, and links with where they lead."""
    return {
        str(path.relative_to(folder)): os.readlink(path) if path.is_symlink() else path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def test_what_is_allowed_is_written_and_folders_are_made_for_it(world: Path, guard: WriteGuard) -> None:
    for path in ("register/incidents.md", "register/reports/2026/a.md", "state/sweep.db", "list/seen.txt"):
        guard.write(world / path, b"text")
        assert (world / path).read_text() == "text"
        assert stat.S_IMODE((world / path).stat().st_mode) == 0o600


ATTACKS: dict[str, Callable[[Path], Path]] = {
    "another folder": lambda world: world / "elsewhere" / "new",
    "dots within the folder": lambda world: world / "register" / ".." / "elsewhere" / "secret",
    "dots that come back": lambda world: world / "register" / "reports" / ".." / "incidents.md",
    "a name that begins alike": lambda world: world / "register-old" / "incidents.md",
    "the folder itself": lambda world: world / "register",
    "the folder above": lambda world: world,
    "a file beside the state": lambda world: world / "state" / "sweep.db2",
    "something below a file that is allowed": lambda world: world / "state" / "sweep.db" / "x",
    "a path that is not absolute": lambda world: Path("register/incidents.md"),
    "a NUL": lambda world: world / "register" / "a\0b",
    "the repository's own": lambda world: world / "register" / ".git" / "hooks" / "pre-commit",
    "the repository's own, in capitals": lambda world: world / "register" / ".GIT" / "config",
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_path_that_leads_elsewhere_is_refused_and_nothing_is_written(
    world: Path, guard: WriteGuard, attack: str
) -> None:
    before = tree(world)
    with pytest.raises(WriteRefused):
        guard.write(ATTACKS[attack](world), b"text")
    with pytest.raises(WriteRefused):
        guard.read(ATTACKS[attack](world), 100)
    assert tree(world) == before


LINKS: dict[str, tuple[str, str, str]] = {
    "the file is a link": ("register/incidents.md", "elsewhere/secret", "register/incidents.md"),
    "the file is a link within the folder": ("register/a.md", "register/b.md", "register/a.md"),
    "the file is a link to nothing": ("register/a.md", "elsewhere/nothing", "register/a.md"),
    "a folder on the way is a link": ("register/2026", "elsewhere", "register/2026/secret"),
    "the folder itself is a link": ("link", "elsewhere", "link/secret"),
    "the state is a link": ("state/sweep.db", "elsewhere/secret", "state/sweep.db"),
}


@pytest.mark.parametrize("attack", LINKS)
def test_a_link_is_refused_and_nothing_is_written(world: Path, attack: str) -> None:
    link, target, path = LINKS[attack]
    (world / link).symlink_to(world / target)
    guard = WriteGuard([world / "register", world / "link"], [world / "state" / "sweep.db"])
    before = tree(world)
    with pytest.raises(WriteRefused):
        guard.write(world / path, b"text")
    with pytest.raises(WriteRefused):
        guard.check(world / path)
    assert tree(world) == before


def test_a_link_back_into_the_folder_does_not_make_a_path_allowed(world: Path, guard: WriteGuard) -> None:
    (world / "register" / "up").symlink_to(world)
    with pytest.raises(WriteRefused):
        guard.write(world / "register" / "up" / "register" / "incidents.md", b"text")


def test_a_file_of_its_own_right_within_the_folder_is_not_reached_through_a_link_either(world: Path) -> None:
    """Whoever can push to the register's repository can put a link there."""
    (world / "register" / "state").symlink_to(world / "elsewhere")
    path = world / "register" / "state" / "sweep.db"
    guard = WriteGuard([world / "register"], [path])
    with pytest.raises(WriteRefused):
        guard.write(path, b"text")
    assert tree(world / "elsewhere") == {"secret": "secret"}


def test_links_above_the_folder_are_those_of_its_owner(world: Path) -> None:
    (world / "home").symlink_to(world)
    guard = WriteGuard([world / "home" / "register"], [])
    guard.write(world / "home" / "register" / "a.md", b"one")
    guard.write(world / "register" / "a.md", b"two")
    assert (world / "register" / "a.md").read_text() == "two"


WRITTEN = ("a/register/incidents.md", "a/register/reports/a.md", "a/state/sweep.db")


@pytest.mark.parametrize("swapped", ["a", "a/register", "a/register/reports", "a/state"])
@pytest.mark.parametrize("path", WRITTEN)
def test_a_link_that_comes_into_the_way_at_any_moment_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, swapped: str
) -> None:
    """Somebody who may write there puts a link in a folder's place while the path is gone down."""
    real, moment = os.open, 0
    while True:
        world, opened = tmp_path / f"world-{moment}", 0
        for folder in ("a/register/reports", "a/state"):
            (world / folder).mkdir(parents=True)
            (world / "evil" / folder).mkdir(parents=True)
        guard = WriteGuard([world / "a/register"], [world / "a/state/sweep.db"])

        def swapping(*words: Any, world: Path = world, moment: int = moment, **more: Any) -> int:
            nonlocal opened
            if opened == moment:
                (world / swapped).rename(world / "moved")
                (world / swapped).symlink_to(world / "evil" / swapped)
            opened += 1
            return real(*words, **more)

        monkeypatch.setattr(os, "open", swapping)
        with suppress(WriteRefused):
            guard.write(world / path, b"text")
        monkeypatch.setattr(os, "open", real)
        assert tree(world / "evil") == {}
        if opened <= moment:
            break
        moment += 1
    assert moment > 3


def test_a_lock_is_made_where_it_was_allowed_and_through_no_link(world: Path) -> None:
    path = world / "state" / "sweep.db.lock"
    guard = WriteGuard([], [path])
    with locked(path, guard):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (world / "state").rename(world / "moved")
    (world / "state").symlink_to(world / "elsewhere")
    with pytest.raises(WriteRefused), locked(path, guard):
        pass
    assert tree(world / "elsewhere") == {"secret": "secret"}


@needs_root
def test_folders_above_that_may_be_passed_and_not_listed_are_no_hindrance(world: Path, guard: WriteGuard) -> None:
    with lowered_rights(world):
        with pytest.raises(PermissionError):
            os.listdir(world.parent)
        guard.write(world / "register" / "incidents.md", b"text")
        assert guard.read(world / "register" / "incidents.md", 100) == b"text"


def test_what_is_no_file_is_refused(world: Path, guard: WriteGuard) -> None:
    os.mkfifo(world / "register" / "pipe")
    for name in ("pipe", "reports"):
        with pytest.raises(WriteRefused):
            guard.write(world / "register" / name, b"text")


def test_other_names_of_a_file_keep_the_old_text_and_its_mode_stays(world: Path, guard: WriteGuard) -> None:
    path, other = world / "register" / "a.md", world / "elsewhere" / "other"
    path.write_text("old")
    path.chmod(0o4640)
    other.hardlink_to(path)
    guard.write(path, b"new")
    assert (path.read_text(), other.read_text()) == ("new", "old")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_write_that_fails_leaves_the_old_text_and_nothing_beside_it(
    world: Path, guard: WriteGuard, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = world / "register" / "a.md"
    path.write_text("old")

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(NotWritten, match="No space"):
        guard.write(path, b"new")
    assert tree(world / "register") == {"a.md": "old"}


def test_a_file_that_is_too_large_is_not_read(world: Path, guard: WriteGuard) -> None:
    guard.write(world / "register" / "a.md", b"12345")
    assert guard.read(world / "register" / "a.md", 5) == b"12345"
    assert guard.read(world / "register" / "missing" / "b.md", 5) is None
    with pytest.raises(NotWritten, match="larger"):
        guard.read(world / "register" / "a.md", 4)
