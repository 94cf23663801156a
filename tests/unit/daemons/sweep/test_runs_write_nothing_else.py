"""Whole runs under attack, and what they change: what they say they write, and nothing else."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ledger.daemons.sweep import rehearsing
from ledger.daemons.sweep.showing_config import writes
from tests.unit.daemons.sweep.gits import own_world
from tests.unit.daemons.sweep.owners import give_away, needs_root, owned
from tests.unit.daemons.sweep.worlds import World
from tests.unit.transcripts.opencode_written import Records, into_database


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    own_world(monkeypatch, tmp_path)
    return World(tmp_path / "home")


LINKS = ("sweep.db", "sweep.db-wal", "sweep.db.lock", "seen.txt", "register", "register/incidents.md")


@pytest.mark.parametrize(
    "name", [*LINKS, "register/index.json", "register/latest.md", "register/reports/2026-03-09.md"]
)
def test_a_link_in_place_of_anything_it_writes_is_refused_and_what_it_leads_to_stays(world: World, name: str) -> None:
    world.damage("one")
    (world.register / "reports").mkdir(parents=True)
    target = world.home / "elsewhere"
    if name == "register":
        (world.register / "reports").rmdir()
        world.register.rmdir()
        target.mkdir()
    else:
        target.write_text("of somebody")
    (world.home / name).symlink_to(target)
    ended = world.run()
    assert ended.status == "failed"
    assert "is a link" in ended.headline or "a link, or something else" in ended.headline
    assert (list(target.iterdir()) == []) if target.is_dir() else (target.read_text() == "of somebody")
    assert (world.home / name).is_symlink()
    assert not (world.register / "incidents.md").is_file() or name == "register/incidents.md"


def test_a_dry_run_changes_nothing_whatever_there_is(world: World) -> None:
    world.damage("one")
    world.configure("[hooks]\non_success_cmd = 'touch hooked'")
    before = world.tree()
    rehearsed = rehearsing.rehearse(world.parts(), with_judge=False)
    assert rehearsed.headline == "1 candidate of 1 session would be judged"
    assert world.tree() == before
    rehearsed = rehearsing.rehearse(world.parts(), with_judge=True)
    assert rehearsed.headline == "would be: 1 incident filed: 1 HIGH"
    assert world.tree(lambda name: name.startswith("judge/asked")) == before
    world.run()
    before = world.tree()
    assert rehearsing.rehearse(world.parts(), with_judge=True).plan is None
    assert world.tree() == before


def test_a_whole_run_changes_nothing_but_what_config_says_it_writes(world: World) -> None:
    world.damage("one")
    (world.home / ".config").mkdir()
    (world.home / ".config" / "settings").write_text("of somebody")
    before = world.tree()
    world.run()
    allowed = writes(world.parts().config)
    changed = {name for name, what in world.tree().items() if before.get(name) != what} | (
        before.keys() - world.tree().keys()
    )
    for name in changed - {"judge/asked-1"}:  # which the judge wrote
        path = world.home / name
        assert path == world.register or any(path == one or one in path.parents for one in allowed), name
    assert changed >= {"register/incidents.md", "sweep.db", "sweep.db.lock", "seen.txt"}


@needs_root
def test_a_whole_run_leaves_another_user_s_transcripts_and_databases_as_they_were(
    world: World, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    database = into_database(theirs / "oc" / "opencode.db", Records(), updated=1_770_000_000_000)
    with closing(sqlite3.connect(database)) as db:
        db.execute("PRAGMA journal_mode = wal")
        db.commit()
    world.damage("one").parent.rename(theirs / "-srv-app")
    give_away(theirs)
    world.configure(f'[[source]]\ntype = "opencode"\npath = "{theirs}/oc/*.db"')
    config = world.home / "sweep.toml"
    config.write_text(config.read_text().replace('path = "projects"', f'path = "{theirs}"'))
    before = owned(theirs)
    assert world.run().headline == "1 incident filed: 1 HIGH"
    assert set(world.seen().values()) == {"judged", "clean"}
    assert owned(theirs) == before
