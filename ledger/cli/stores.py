"""Opens the store that `--store URL` names."""

from __future__ import annotations

from pathlib import Path

from ledger.errors import InvalidField
from ledger.store.base import Store
from ledger.store.postgres_url import is_postgres

_HINT = "Write sqlite:///PATH or postgresql://USER@HOST/DATABASE."


def sqlite_path(url: str) -> Path | None:
    """The file of a `sqlite:///PATH` URL (a fourth slash makes it absolute), or None for another scheme."""
    scheme, separator, path = url.partition(":///")
    if scheme != "sqlite" or not separator:
        return None
    if not path:
        raise InvalidField("store", f"{url!r} names no file", hint=_HINT)
    return Path(path)


def needed_sqlite_path(url: str) -> Path:
    """As `sqlite_path`. Raises InvalidField for a URL that it does not know."""
    path = sqlite_path(url)
    if path is None:
        raise InvalidField("store", f"{url!r} is no store", hint=_HINT)
    return path


async def open_store(url: str, *, read_only: bool = False) -> Store:
    """Opens a store for writing, which for a SQLite file one server may do at a time, or beside a server to read.

    Raises InvalidField for a URL it does not know, else what the backend raises."""
    if is_postgres(url):
        from ledger.store.postgres import PostgresStore

        return await PostgresStore.open(url, read_only=read_only)
    from ledger.store.sqlite import SqliteStore

    return await SqliteStore.open(needed_sqlite_path(url), read_only=read_only)
