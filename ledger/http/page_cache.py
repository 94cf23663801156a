"""Pages rendered once for all who look at them.

Ten people with one page open ask for it in the same moment: when something moved. The first of them has it made, the
others get the same text. A page is made anew once its root has moved, and after a second in any case, because ages
and delivery counts change without a commit. Between two times it rests for three times as long as it took to make,
and whoever asks meanwhile waits for the next: so a page costs a bounded share of the server, however many look and
however much is pushed.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any

from ledger.store.base import Heads, Store

FRESH_S = 1.0
REST_PER_COST = 3.0
PAGES_KEPT = 100

Key = tuple[str, ...]
Make = Callable[[], Coroutine[Any, Any, str]]


class PageCache:
    """`monotonic` gives seconds; only differences count."""

    def __init__(self, store: Store, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._pages: OrderedDict[Key, _Page] = OrderedDict()
        store.subscribe(self._moved)

    async def get(self, key: Key, root: str | None, make: Make) -> str:
        """The page that `make` gave, now or for somebody else a moment ago. `root` is what it tells of, None for all
        roots. Raises what `make` raises; that is not kept."""
        page = self._pages.get(key)
        if page is None or page.past(self._monotonic()):
            page = self._pages[key] = _Page(root, make, page, self._monotonic)
            self._pages.move_to_end(key)
            while len(self._pages) > PAGES_KEPT:
                self._pages.popitem(last=False)
        return await asyncio.shield(page.made)  # a reader who leaves takes the page from nobody

    def _moved(self, roots: frozenset[str], _: Heads) -> None:
        for page in self._pages.values():
            if page.root is None or page.root in roots:
                page.root_moved()


class _Page:
    """One making of a page, begun once the one before it has ended and rested."""

    def __init__(self, root: str | None, make: Make, before: _Page | None, monotonic: Callable[[], float]) -> None:
        self.root = root
        self._monotonic = monotonic
        self._began_at: float | None = None
        self._ended_at = 0.0
        self._stale = False
        self.made = asyncio.create_task(self._make(make, before))

    async def _make(self, make: Make, before: _Page | None) -> str:
        if before is not None:
            await before.rested()
        self._began_at = self._monotonic()
        try:
            return await make()
        except BaseException:
            self._stale = True
            raise
        finally:
            self._ended_at = self._monotonic()

    async def rested(self) -> None:
        """Returns once it has been made, and its rest is over."""
        await asyncio.wait([self.made])
        took = self._ended_at - (self._began_at or 0.0)
        await asyncio.sleep(max(0.0, self._ended_at + REST_PER_COST * took - self._monotonic()))

    def past(self, now: float) -> bool:
        """Whether it may tell less than can be known now."""
        return self._stale or (self._began_at is not None and now - self._began_at > FRESH_S)

    def root_moved(self) -> None:
        """What is being made just now may have been read before the commit; what has not begun cannot."""
        self._stale = self._stale or self._began_at is not None
