"""Opens the store that `--store URL` names."""

from __future__ import annotations

from pathlib import Path

from ledger.errors import InvalidField
from ledger.store.base import Store


def sqlite_path(url: str) -> Path | None:
    """The file of a `sqlite:///PATH` URL (a fourth slash makes it absolute), or None for another scheme."""
    scheme, separator, path = url.partition(":///")
    if scheme != "sqlite" or not separator:
        return None
    if not path:
        raise InvalidField("store", f"{url!r} names no file", hint="Write sqlite:///PATH.")
    return Path(path)


async def open_store(url: str, *, read_only: bool = False) -> Store:
    """Opens a store for writing, which one server may do at a time, or beside a server to read.

    Raises InvalidField for a URL it does not know, else what the backend raises."""
    path = sqlite_path(url)
    if path is None:
        raise InvalidField("store", f"{url!r} is no store", hint="Write sqlite:///PATH.")
    from ledger.store.sqlite import SqliteStore

    return await SqliteStore.open(path, read_only=read_only)
