"""opencode's databases: read, and left as they were."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ledger.daemons.sweep.model import Found, SourceFailed, Unreadable
from ledger.daemons.sweep.sources.databases import DatabaseSource
from ledger.transcripts import opencode_db
from tests.unit.daemons.sweep.owners import SOMEBODY, give_away, lowered_rights, needs_root, owned
from tests.unit.transcripts.opencode_written import SESSION, START_MS, Records, into_database

OTHER = "ses_0000000001ffAbCdEfGhIjKlMn"


def records(id_: str = SESSION, words: str = "Fix it", created: int = 0) -> Records:
    made = Records(id_, created)
    message = made.message("user", created + 1)
    made.part(message, created + 2, "text", text=words)
    return made


def found(pattern: Path | str) -> list[Found]:
    return [one for one in DatabaseSource("oc", str(pattern)).sessions() if isinstance(one, Found)]


def words(pattern: Path) -> list[str]:
    source = DatabaseSource("oc", str(pattern))
    read = [source.read(one) for one in source.sessions() if isinstance(one, Found)]
    return [str(moment.payload["text"]) for session in read for moment in session.moments if "text" in moment.payload]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture
def wal(tmp_path: Path) -> Path:
    """A database with a write-ahead log, which nobody has open."""
    path = into_database(tmp_path / "opencode.db", records(), updated=START_MS)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = wal")
        db.execute("UPDATE part SET time_updated = ?", (START_MS + 7,))
        db.commit()
    assert [one.name for one in tmp_path.iterdir()] == ["opencode.db"]
    return path


def test_a_key_is_the_session_and_when_anything_in_it_was_written_last(tmp_path: Path) -> None:
    path = into_database(tmp_path / "a" / "oc.db", records(), updated=START_MS + 5)
    (one,) = found(tmp_path / "*" / "oc.db")
    assert (one.key, one.session_id) == (f"{SESSION}:{START_MS + 5}", SESSION)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE part SET time_updated = ?", (START_MS + 9,))
    assert found(tmp_path / "*" / "oc.db")[0].key == f"{SESSION}:{START_MS + 9}"


def test_sessions_are_read_the_longest_unchanged_first(tmp_path: Path) -> None:
    into_database(tmp_path / "b.db", records(SESSION, "newer"), updated=START_MS + 50)
    into_database(tmp_path / "a.db", records(OTHER, "older"), updated=START_MS + 10)
    assert words(tmp_path / "*.db") == ["older", "newer"]


def test_a_session_in_two_databases_is_read_where_it_was_written_last(tmp_path: Path) -> None:
    into_database(tmp_path / "a.db", records(SESSION, "before"), updated=START_MS)
    into_database(tmp_path / "b.db", records(SESSION, "after"), updated=START_MS + 1)
    assert words(tmp_path / "*.db") == ["after"]


def test_a_file_that_is_no_database_is_reported_and_the_others_are_read(tmp_path: Path) -> None:
    into_database(tmp_path / "a.db", records())
    (tmp_path / "b.db").write_bytes(b"no database at all, but long enough to look at as one")
    told = list(DatabaseSource("oc", str(tmp_path / "*.db")).sessions())
    assert [Path(one.where).name for one in told if isinstance(one, Unreadable)] == ["b.db"]
    assert [one.session_id for one in told if isinstance(one, Found)] == [SESSION]


def test_a_pattern_by_which_nothing_is_found_fails_the_source(tmp_path: Path) -> None:
    with pytest.raises(SourceFailed, match=r"source 'oc': no file is found by .*nothing\*\.db"):
        found(tmp_path / "nothing*.db")


def test_nothing_appears_beside_a_database_that_nobody_has_open(wal: Path) -> None:
    before = files(wal.parent)
    assert words(wal) == ["Fix it"]
    assert files(wal.parent) == before


def test_a_live_database_is_read_with_what_stands_in_its_log(wal: Path) -> None:
    with closing(sqlite3.connect(wal)) as db:
        db.execute("UPDATE part SET data = replace(data, 'Fix it', 'Fix it now')")
        db.commit()
        assert words(wal) == ["Fix it now"]


def test_a_database_of_another_owner_is_opened_as_one_that_nobody_writes(
    wal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(wal)) as db:  # its owner has it open, and its log holds what the file does not
        db.execute("UPDATE part SET data = replace(data, 'Fix it', 'Fix it now')")
        db.commit()
        monkeypatch.setattr(os, "geteuid", lambda: wal.stat().st_uid + 1)
        before = files(wal.parent)
        assert words(wal) == ["Fix it"]
        assert files(wal.parent) == before
    assert opencode_db.is_opencode(wal)


@needs_root
@pytest.mark.parametrize("is_live", [True, False])
@pytest.mark.parametrize("we_are", ["root", "somebody"])
def test_a_database_that_another_user_owns_stays_as_it_was(wal: Path, is_live: bool, we_are: str) -> None:
    """The real thing: root looks at a user's database, a user at root's in a folder that everybody may write to."""
    with closing(sqlite3.connect(wal)) as db:
        if is_live:
            db.execute("UPDATE part SET data = replace(data, 'Fix it', 'Fix it now')")
            db.commit()
        else:
            db.close()
        for path in (wal.parent, *wal.parent.iterdir()):
            path.chmod(0o777)
        if we_are == "root":
            give_away(wal.parent)
            before = owned(wal.parent)
            assert words(wal) == ["Fix it"]
        else:
            with lowered_rights(wal.parent, owner=0):
                before = owned(wal.parent)
                assert words(wal) == ["Fix it"]
                with pytest.raises(PermissionError):
                    os.chown(wal, SOMEBODY, SOMEBODY)  # it was no root who read
        assert owned(wal.parent) == before


@needs_root
def test_a_database_that_we_may_not_read_is_reported(wal: Path) -> None:
    wal.parent.chmod(0o755)
    wal.chmod(0o600)
    with lowered_rights(wal.parent, owner=0):
        [told] = DatabaseSource("oc", str(wal)).sessions()
    assert isinstance(told, Unreadable)


def test_a_database_cannot_be_written_to(wal: Path) -> None:
    with opencode_db._opened(wal) as db, pytest.raises(sqlite3.OperationalError, match="readonly"):
        db.execute("DELETE FROM part")
