from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ledger.store.sqlite_file import APPLICATION_ID, ddl


@pytest.fixture
def sqlite_ledger() -> Callable[[Path], None]:
    """Makes the empty ledger of a server."""

    def make(path: Path) -> None:
        with closing(sqlite3.connect(path)) as db:
            db.executescript(ddl() + f"PRAGMA application_id = {APPLICATION_ID};")

    return make
