"""Tells this server's live readers what moved.

A listener holds a set of roots, not a queue of messages: however slow it reads, it costs what it asked for and is
told all that moved.
"""

from __future__ import annotations

import asyncio

from ledger.errors import Overloaded
from ledger.store.base import Heads, Store

LISTENERS_MAX = 10_000


class Listener:
    """What moved since it was last asked, and a bell. `heads` are those of the last commit it was told of: all that
    moved up to there has been told, which cannot be said of the heads that the store has by now."""

    def __init__(self, roots: frozenset[str]) -> None:
        self._wanted = roots
        self._moved: set[str] = set()
        self._bell = asyncio.Event()
        self.heads: Heads = ()

    def tell(self, roots: frozenset[str], heads: Heads) -> None:
        self.heads = heads
        moved = roots & self._wanted if self._wanted else roots
        if moved:
            self._moved |= moved
            self._bell.set()

    def hang_up(self) -> None:
        self._wanted = frozenset()
        self._bell.set()

    async def rung(self, timeout_s: float) -> bool:
        """True as soon as a root has moved, or at a hang-up; False when the time is over."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._bell.wait()
        except TimeoutError:
            return False
        self._bell.clear()
        return True

    def moved(self) -> set[str]:
        """The roots that have moved since this was last asked."""
        moved, self._moved = self._moved, set()
        return moved


class Hub:
    """Passes commits on to this server's listeners. One subscription to the store, whatever their number."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._listeners: set[Listener] = set()
        self._unsubscribe = store.subscribe(self._tell)
        self.closing = False

    def _tell(self, roots: frozenset[str], heads: Heads) -> None:
        for listener in self._listeners:
            listener.tell(roots, heads)

    def check_room(self) -> None:
        """Raises Overloaded where there are as many listeners as there may be."""
        if len(self._listeners) >= LISTENERS_MAX:
            raise Overloaded(f"{LISTENERS_MAX} live readers are connected", retry_after_s=10)

    def listen(self, roots: frozenset[str] = frozenset()) -> Listener:
        """A listener for some roots, or for all. Raises Overloaded."""
        self.check_room()
        listener = Listener(roots)
        self._listeners.add(listener)
        return listener

    def leave(self, listener: Listener) -> None:
        self._listeners.discard(listener)

    def __len__(self) -> int:
        return len(self._listeners)

    def close(self) -> None:
        """Ends every stream, so that a server can stop."""
        if self.closing:
            return
        self.closing = True
        self._unsubscribe()
        for listener in self._listeners:
            listener.hang_up()
