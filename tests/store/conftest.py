from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from ledger.store.base import Store

pytest.register_assert_rewrite("tests.store.building", "tests.store.suite")

from tests.store.building import Clock  # noqa: E402 — only after the line above


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def store(make_store: Callable[[], Awaitable[Store]]) -> AsyncIterator[Store]:
    """A fresh store of the backend under test; each test module of a backend defines `make_store`."""
    store = await make_store()
    yield store
    await store.close()
