"""What one server derives from the whole log while it runs: the search index and the trends."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import structlog

from ledger.cli.stores import sqlite_path
from ledger.errors import StorageError
from ledger.following import Follower
from ledger.http.services import Services
from ledger.searching import Indexing
from ledger.store.base import Store
from ledger.store.search import SqliteSearch
from ledger.store.search_base import SearchIndex

log = structlog.get_logger()


@asynccontextmanager
async def search_index(store: Store, url: str) -> AsyncIterator[SearchIndex | None]:
    """The index beside the ledger's file; in a folder for as long as the server runs where the ledger is no file.
    None where it can be neither read nor made: everything else works without it."""
    async with AsyncExitStack() as held:
        path = sqlite_path(url)
        if path is None:
            path = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="ledgerd-"))) / "ledger"
        path = path.expanduser().resolve()
        try:
            index = await SqliteSearch.open(
                path.with_name(path.name + ".search"), ledger_id=store.ledger_id, heads=await store.heads()
            )
        except StorageError as error:
            log.warning("no search index", detail=error.detail)
            yield None
            return
        held.push_async_callback(index.close)
        yield index


@asynccontextmanager
async def followed(services: Services) -> AsyncIterator[None]:
    """Follows the log while the block runs, then keeps what was folded."""

    def busy() -> bool:
        return services.admission.in_flight_bytes > 0

    followers = [Follower(services.store, services.trends, busy=busy)]
    if services.search is not None:
        followers.append(Follower(services.store, Indexing(services.search), busy=busy))
    for follower in followers:
        follower.start()
    try:
        yield
    finally:
        for follower in followers:
            await follower.stop()
        await services.trends.close()
