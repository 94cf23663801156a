"""The search index on SQLite's FTS5, in a file of its own beside the ledger.

The file is a cache. One that is damaged, of another version, of another ledger, or ahead of its ledger (which was
restored from a backup, say) is deleted and made anew. Words are taken as Unicode has them, without their accents; a
script that writes no spaces is found by the beginnings of its runs.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from ledger.errors import InvalidField, StorageError
from ledger.store import sqlite_file
from ledger.store.base import Heads
from ledger.store.search_base import Batch, Entry, Found, Wanted
from ledger.store.sqlite_file import Database, Statement, driver_errors

VERSION = 1
TEXT_CHARS_MAX = 16_000  # of one entry; beyond, its words are not found
TERMS_MAX = 16
SEARCH_S_MAX = 5.0

_EXCERPT_WORDS = 32
_EXCERPT_CHARS = 240
# What FTS5 puts around a hit. Texts are indexed without these characters, so no text can pretend to be a hit.
_HIT, _HIT_END = "\x01", "\x02"
_MARKS = re.compile(f"[\x00{_HIT}{_HIT_END}]")
_TERM = re.compile(r'"([^"]*)(?:"|$)|([^\s"]+)')
_COLUMNS = (
    "e.entry_n, e.root, e.task_id, e.session_id, e.seq, e.position, e.sort, e.actor, e.at, e.project_id, e.agent,"
    " e.host, e.copies"
)


class SqliteSearch:
    """See `ledger.store.search_base.SearchIndex`. Made by `open`."""

    def __init__(self, path: Path, writer: Database, reader: Database) -> None:
        self._path = path
        self._writer = writer
        self._reader = reader
        self._reading = asyncio.Lock()

    @classmethod
    async def open(cls, path: Path, *, ledger_id: str, heads: Heads) -> SqliteSearch:
        """The index at `path` of the ledger that stands at `heads`; made anew where there is none that fits.

        Raises StorageError where it can be neither read nor made."""
        if not await _fits(path, ledger_id, heads):
            await _make(path, ledger_id, len(heads))
        writer = await sqlite_file.connect(path)
        try:
            with driver_errors(path):
                await writer.execute_fetchall("PRAGMA synchronous = NORMAL")  # lost with the power, it is read again
            return cls(path, writer, await sqlite_file.connect(path, read_only=True))
        except BaseException:
            await writer.close()
            raise

    async def close(self) -> None:
        await self._writer.close()
        await self._reader.close()

    async def heads(self) -> Heads:
        with driver_errors(self._path):
            [(heads,)] = await self._reader.execute_fetchall("SELECT heads FROM index_of")
        return tuple(json.loads(heads))

    async def add(self, batch: Batch, heads: Heads) -> None:
        statements: list[Statement] = [
            *(("INSERT OR IGNORE INTO sessions VALUES (?, ?, ?)", session) for session in batch.sessions),
            *(("INSERT OR IGNORE INTO projects VALUES (?, ?)", project) for project in batch.projects),
            *map(_insertion, batch.entries),
            ("UPDATE index_of SET heads = ?", (json.dumps(heads),)),
        ]
        with driver_errors(self._path):
            await self._writer.transact(statements)

    async def find(self, wanted: Wanted) -> tuple[list[Found], int | None]:
        match = match_expression(wanted.words)
        if wanted.words.strip() and not match:
            return [], None
        sql, values = _query(wanted, match)
        async with self._reading:
            rows = await self._bounded(sql, values)
        found = [_found(row) for row in rows[: wanted.limit]]
        return found, found[-1].number if len(rows) > wanted.limit else None

    async def _bounded(self, sql: str, values: Sequence[Any]) -> list[Any]:
        try:
            with driver_errors(self._path):
                async with asyncio.timeout(SEARCH_S_MAX):
                    return list(await self._reader.execute_fetchall(sql, values))
        except TimeoutError:
            await self._reader.interrupt()
            raise InvalidField(
                "q", f"takes longer than {SEARCH_S_MAX:g} s to find", hint="Add a rarer word, or take a filter away."
            ) from None


def match_expression(words: str) -> str:
    """What FTS5 is asked for: every term in quotes, so that nothing of it is syntax; the last one, unless it is
    quoted or a space follows it, as a beginning. Empty where there is no term."""
    words = _MARKS.sub(" ", words)
    found = list(_TERM.finditer(words))[:TERMS_MAX]
    terms = [f'"{one[1] if one[1] is not None else one[2]}"' for one in found if (one[1] or one[2] or "").strip()]
    if terms and found[-1][2] and not words[-1:].isspace():
        terms[-1] += "*"
    return " ".join(terms)


async def _fits(path: Path, ledger_id: str, heads: Heads) -> bool:
    if not path.exists():
        return False
    try:
        db = await sqlite_file.connect(path, read_only=True)
        try:
            with driver_errors(path):
                [(version, of, taken)] = await db.execute_fetchall("SELECT version, ledger_id, heads FROM index_of")
        finally:
            await db.close()
        stands_at = json.loads(taken)
    except (StorageError, ValueError):
        return False
    if (version, of, len(stands_at)) != (VERSION, ledger_id, len(heads)):
        return False
    return all(mine <= its for mine, its in zip(stands_at, heads, strict=True))


async def _make(path: Path, ledger_id: str, buckets: int) -> None:
    try:
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))  # it repeats what the ledger holds
    except OSError as error:
        raise StorageError(f"cannot make the search index {path} anew: {error.strerror}") from error
    db = await sqlite_file.connect(path)
    try:
        with driver_errors(path):
            await db.execute_fetchall("PRAGMA journal_mode = WAL")
            script = (files("ledger.store") / "schema" / f"search_{VERSION:04}.sql").read_text(encoding="utf-8")
            await db.executescript(script)
            start = json.dumps([0] * buckets)
            await db.execute_fetchall("INSERT INTO index_of VALUES (?, ?, ?)", (VERSION, ledger_id, start))
    finally:
        await db.close()


def _insertion(entry: Entry) -> Statement:
    return (
        "INSERT INTO entries (root, task_id, seq, digest, session_id, position, sort, actor, at, text, project_id,"
        " agent, host) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,"
        " (SELECT project_id FROM projects WHERE root = ?1),"
        " (SELECT agent FROM sessions WHERE session_id = ?5), (SELECT host FROM sessions WHERE session_id = ?5))"
        " ON CONFLICT (root, task_id, seq, digest) DO UPDATE SET copies = copies + 1",
        (
            entry.root,
            entry.task_id or "",
            entry.seq,
            entry.digest,
            entry.session_id,
            entry.position,
            entry.sort,
            entry.actor,
            entry.at,
            _MARKS.sub("\ufffd", entry.text[:TEXT_CHARS_MAX]),
        ),
    )


def _query(wanted: Wanted, match: str) -> tuple[str, list[Any]]:
    """One row more than `wanted.limit`, if there is one."""
    if match:
        excerpt = f"snippet(words, 0, '{_HIT}', '{_HIT_END}', '…', {_EXCERPT_WORDS})"
        source, conditions, values = "words JOIN entries e ON e.entry_n = words.rowid", ["words MATCH ?"], [match]
    else:
        excerpt = f"substr(e.text, 1, {_EXCERPT_CHARS}) || iif(length(e.text) > {_EXCERPT_CHARS}, '…', '')"
        source, conditions, values = "entries e", [], []
    order = "words.rowid" if match else "e.entry_n"
    for condition, value in _conditions(wanted, order):
        conditions.append(condition)
        values += value
    where = " AND ".join(conditions) or "true"
    sql = f"SELECT {_COLUMNS}, {excerpt} FROM {source} WHERE {where} ORDER BY {order} DESC LIMIT ?"
    return sql, [*values, wanted.limit + 1]


def _conditions(wanted: Wanted, order: str) -> Iterator[tuple[str, list[Any]]]:
    exact = {
        "e.sort = ?": wanted.sort,
        "e.project_id = ?": wanted.project_id,
        "e.root = 'goal/' || ?": wanted.goal_id,
        "e.agent = ?": wanted.agent,
        "e.host = ?": wanted.host,
        "e.at >= ?": wanted.since,
        "e.at <= ?": wanted.until,
        f"{order} < ?": wanted.before,
    }
    yield from ((condition, [value]) for condition, value in exact.items() if value is not None)
    if wanted.tasks is not None or wanted.goals is not None:
        yield (
            "(e.task_id IN (SELECT value FROM json_each(?))"
            " OR e.task_id = '' AND e.root IN (SELECT 'goal/' || value FROM json_each(?)))",
            [json.dumps(list(wanted.tasks or ())), json.dumps(list(wanted.goals or ()))],
        )


def _found(row: Sequence[Any]) -> Found:
    *fields, excerpt = row
    fields[2] = fields[2] or None  # the task
    return Found(*fields, tuple(_stretches(excerpt)))  # type: ignore[call-arg]  # in the order of _COLUMNS


def _stretches(excerpt: str) -> Iterator[tuple[str, bool]]:
    before, *hits = excerpt.split(_HIT)
    if before:
        yield before, False
    for hit in hits:
        said, _, after = hit.partition(_HIT_END)
        yield said, True
        if after:
            yield after, False
