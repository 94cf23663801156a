"""The search index on SQLite: what is found, and when the file is made anew."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ledger.errors import InvalidField, StorageError
from ledger.store import search
from ledger.store.search import SqliteSearch, match_expression
from ledger.store.search_base import REMARK, Batch, Entry, Found, Wanted

LEDGER = "0123456789abcdef"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db.search"


@pytest.fixture
async def index(path: Path) -> AsyncIterator[SqliteSearch]:
    opened = await SqliteSearch.open(path, ledger_id=LEDGER, heads=(1000,))
    yield opened
    await opened.close()


def entry(seq: int, text: str, **more: Any) -> Entry:
    fields: dict[str, Any] = {
        "root": "goal/7",
        "task_id": "1",
        "session_id": "s",
        "seq": seq,
        "position": seq + 10,
        "sort": REMARK,
        "actor": "model",
        "at": seq,
        "text": text,
        "digest": text.encode()[:16],
    }
    return Entry(**(fields | more))


async def add(index: SqliteSearch, *entries: Entry, head: int = 1, **facts: Any) -> None:
    await index.add(Batch(entries, facts.get("sessions", ()), facts.get("projects", ())), (head,))


async def found(index: SqliteSearch, words: str = "", **wanted: Any) -> list[Found]:
    return (await index.find(Wanted(words, **wanted)))[0]


async def seqs(index: SqliteSearch, words: str = "", **wanted: Any) -> list[int]:
    return [one.seq for one in await found(index, words, **wanted)]


async def test_all_words_must_occur_and_the_last_may_be_a_beginning(index: SqliteSearch) -> None:
    await add(index, entry(1, "The grammar is ported"), entry(2, "The lexer is ported"))
    assert await seqs(index, "ported") == [2, 1]
    assert await seqs(index, "ported gram") == [1]
    assert await seqs(index, "ported gram ") == []
    assert await seqs(index, "PORTED the") == [2, 1]
    assert await seqs(index, "nowhere") == []


async def test_words_in_quotes_stand_side_by_side(index: SqliteSearch) -> None:
    await add(index, entry(1, "open the door"), entry(2, "the open door"))
    assert await seqs(index, '"open door"') == [2]
    assert await seqs(index, '"the open') == [2]
    assert await seqs(index, "src/open.rs") == []


async def test_paths_and_accents_are_found(index: SqliteSearch) -> None:
    await add(index, entry(1, "edit src/lexer.rs --all"), entry(2, "Überprüfung"))
    assert await seqs(index, "src/lexer.rs") == [1]
    assert await seqs(index, "lexer --all") == [1]
    assert await seqs(index, "uberpruf") == [2]


@pytest.mark.parametrize(
    "words", ['"', '""', "*", "a OR", "NOT", "text:x", "(", "-a", "^a", "a AND (b", "\x00", "{x y}:z", "NEAR(a b)"]
)
async def test_nothing_that_is_asked_is_syntax(index: SqliteSearch, words: str) -> None:
    await add(index, entry(1, "quite some other text"))
    assert await seqs(index, words) == []


@given(st.text(max_size=60))
@settings(max_examples=300, print_blob=True)
def test_any_words_make_an_expression_that_fts5_reads(words: str) -> None:
    db = sqlite3.connect(":memory:")
    try:
        db.execute("CREATE VIRTUAL TABLE words USING fts5 (text)")
        if match := match_expression(words.encode("utf-8", "replace").decode()):
            assert db.execute("SELECT count(*) FROM words WHERE words MATCH ?", (match,)).fetchone() == (0,)
    finally:
        db.close()


async def test_copies_under_other_sessions_are_one_find(index: SqliteSearch) -> None:
    said = entry(1, "the harness collapsed")
    copies = [replace(said, session_id=f"churn-{n}", position=20 + n) for n in range(2)]
    await add(index, said)
    await add(index, *copies, entry(2, "the harness collapsed"), replace(said, task_id="2"))
    assert [(one.seq, one.task_id, one.session_id, one.copies) for one in await found(index, "collapsed")] == [
        (1, "2", "s", 1),
        (2, "1", "s", 1),
        (1, "1", "s", 3),
    ]


async def test_each_filter_narrows(index: SqliteSearch) -> None:
    await add(
        index,
        entry(1, "a word"),
        entry(2, "a word", session_id="t", task_id="2", root="task/2", sort="error"),
        entry(3, "a word", session_id="@goal/8", task_id=None, root="goal/8"),
        sessions=[("s", "codex", "mole"), ("t", "claude", None)],
        projects=[("goal/7", "p1"), ("task/2", "p2")],
    )
    assert await seqs(index, "word", agent="codex") == [1]
    assert await seqs(index, "word", host="mole") == [1]
    assert await seqs(index, "word", project_id="p2") == [2]
    assert await seqs(index, "word", goal_id="8") == [3]
    assert await seqs(index, "word", sort="error") == [2]
    assert await seqs(index, "word", since=2) == [3, 2]
    assert await seqs(index, "word", since=2, until=2) == [2]
    assert await seqs(index, "word", tasks=["1"], goals=["8"]) == [3, 1]
    assert await seqs(index, "word", tasks=[]) == []
    assert await seqs(index, agent="codex") == [1]


async def test_pages_follow_each_other_without_a_gap(index: SqliteSearch) -> None:
    await add(index, *(entry(n, f"word {n}") for n in range(7)))
    for words in ("word", ""):
        pages, before = [], None
        while True:
            page, before = await index.find(Wanted(words, before=before, limit=3))
            pages.append([one.seq for one in page])
            if before is None:
                break
        assert pages == [[6, 5, 4], [3, 2, 1], [0]]


async def test_an_excerpt_marks_the_hits_and_nothing_that_pretends_to_be_one(index: SqliteSearch) -> None:
    await add(index, entry(1, "so \x01fake\x02 and a <b>real</b> one"))
    [one] = await found(index, "real")
    assert one.excerpt == (("so \ufffdfake\ufffd and a <b>", False), ("real", True), ("</b> one", False))
    [plain] = await found(index, sort=REMARK)
    assert plain.excerpt == (("so \ufffdfake\ufffd and a <b>real</b> one", False),)


async def test_a_long_text_is_shown_around_its_hit(index: SqliteSearch) -> None:
    await add(index, entry(1, "before " * 500 + "needle" + " after" * 500))
    [one] = await found(index, "needle")
    shown = "".join(text for text, _ in one.excerpt)
    assert "needle" in shown
    assert len(shown) < 400


async def test_the_cursor_moves_with_what_was_added_or_not_at_all(index: SqliteSearch, path: Path) -> None:
    assert await index.heads() == (0,)
    await add(index, entry(1, "a word"), head=5)
    assert await index.heads() == (5,)
    with pytest.raises(StorageError):
        await add(index, entry(2, "a word"), entry(3, "b", digest=None), head=9)
    assert await index.heads() == (5,)
    assert await seqs(index) == [1]


async def test_an_index_that_is_opened_again_goes_on_where_it_was(path: Path) -> None:
    for expected in ([], [1]):
        index = await SqliteSearch.open(path, ledger_id=LEDGER, heads=(5,))
        assert await seqs(index) == expected
        await add(index, *([] if expected else [entry(1, "a word")]), head=5)
        await index.close()
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("how", ["other ledger", "ahead", "more buckets", "version", "garbage", "empty"])
async def test_an_index_that_does_not_fit_is_made_anew(path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    index = await SqliteSearch.open(path, ledger_id=LEDGER, heads=(5,))
    await add(index, entry(1, "a word"), head=5)
    await index.close()
    ledger_id, heads = LEDGER, (5,)
    if how == "other ledger":
        ledger_id = "f" * 16
    elif how == "ahead":
        heads = (4,)
    elif how == "more buckets":
        heads = (5, 5)
    elif how == "version":
        db = sqlite3.connect(path)
        db.execute("UPDATE index_of SET version = 0")
        db.commit()
        db.close()
    else:
        path.write_bytes(b"no database at all, but long enough to look like one" * 20 if how == "garbage" else b"")
    index = await SqliteSearch.open(path, ledger_id=ledger_id, heads=heads)
    assert await index.heads() == (0,) * len(heads)
    assert await seqs(index) == []
    await index.close()


async def test_a_search_that_takes_too_long_is_ended(index: SqliteSearch, monkeypatch: pytest.MonkeyPatch) -> None:
    await add(index, *(entry(n, f"word {n}") for n in range(2000)))
    monkeypatch.setattr(search, "SEARCH_S_MAX", 0)
    with pytest.raises(InvalidField, match="takes longer"):
        await found(index, "word")
    monkeypatch.undo()
    assert len(await found(index, "word")) == 50


async def test_a_place_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        await SqliteSearch.open(tmp_path / "no folder" / "x.search", ledger_id=LEDGER, heads=(0,))
