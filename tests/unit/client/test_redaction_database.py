"""Hyperscan's database is kept between processes, and what is kept is not trusted blindly."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.client.redaction import database

hyperscan = pytest.importorskip("hyperscan")

EXPRESSIONS = [(3, "abc", True), (7, "x{2}", False)]


def found_by(ready: hyperscan.Database, text: bytes) -> list[tuple[int, int]]:
    hits: list[tuple[int, int]] = []
    ready.scan(text, match_event_handler=lambda number, start, end, flags, context: hits.append((number, end)))
    return hits


def test_what_was_compiled_once_is_loaded_afterwards(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    assert database.load(EXPRESSIONS, folder) is None
    first = database.compiled(EXPRESSIONS, folder)
    again = database.load(EXPRESSIONS, folder)
    assert found_by(first, b"-ABC-xx") == found_by(again, b"-ABC-xx") == [(3, 4), (7, 7)]
    assert [path.suffix for path in folder.iterdir()] == [".hsdb"]
    assert folder.stat().st_mode & 0o077 == 0


def test_a_process_that_may_write_nowhere_compiles_and_keeps_nothing(tmp_path: Path) -> None:
    with database.keeping_nothing():
        assert found_by(database.compiled(EXPRESSIONS, tmp_path), b"abc") == [(3, 3)]
        assert list(tmp_path.iterdir()) == []
    database.compiled(EXPRESSIONS, tmp_path)
    with database.keeping_nothing():
        assert database.load(EXPRESSIONS, tmp_path) is not None


def test_other_patterns_are_another_database(tmp_path: Path) -> None:
    database.compiled(EXPRESSIONS, tmp_path)
    assert database.load(EXPRESSIONS[:1], tmp_path) is None


def test_a_kept_database_that_was_damaged_is_compiled_anew(tmp_path: Path) -> None:
    database.compiled(EXPRESSIONS, tmp_path)
    [kept] = tmp_path.iterdir()
    whole = kept.read_bytes()
    for damaged in (b"", whole[:100], whole[:-1] + bytes([whole[-1] ^ 1]), b"\0" * len(whole)):
        kept.write_bytes(damaged)
        assert database.load(EXPRESSIONS, tmp_path) is None
    database.compiled(EXPRESSIONS, tmp_path)
    assert kept.read_bytes() == whole


def test_without_a_folder_to_write_to_it_works_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert found_by(database.compiled(EXPRESSIONS, tmp_path / "file" / "x"), b"abc") == [(3, 3)]
    assert found_by(database.compiled(EXPRESSIONS, None), b"abc") == [(3, 3)]
    assert database.load(EXPRESSIONS, None) is None
