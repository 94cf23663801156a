"""Tells a server's listeners what was committed: its own commits at once, those of other servers by looking.

All that moved up to the heads that a listener is told has been told. A commit of this server that stands directly
behind what was told is told as it is; one that stands behind commits of others waits for the next look, which a look
at the counter rows every LOOK_S brings, and such a commit brings at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ledger.errors import StorageError
from ledger.store.base import Heads, Listener

LOOK_S = 0.1
_LOOK_AGAIN_S = 1.0  # while the database cannot be reached


class Teller:
    """`heads` reads where the log stands; `moved` gives the roots that moved between two positions of a bucket."""

    def __init__(
        self,
        told: Heads,
        heads: Callable[[], Awaitable[Heads]],
        moved: Callable[[int, int, int], Awaitable[list[str]]],
    ) -> None:
        self._told = list(told)
        self._heads = heads
        self._moved = moved
        self._listeners: list[Listener] = []
        self._look = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self, beside: Callable[[], Awaitable[None]]) -> None:
        """Begins to look; `beside` is called after each look."""
        self._task = asyncio.create_task(self._run(beside), name="ledger teller")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @property
    def told(self) -> Heads:
        return tuple(self._told)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def committed(self, bucket: int, first: int, last: int, roots: frozenset[str]) -> None:
        """Takes a commit of this server."""
        if last <= self._told[bucket]:
            return
        if first == self._told[bucket] + 1:
            self._tell(bucket, last, roots)
        else:
            self._look.set()

    def _tell(self, bucket: int, last: int, roots: frozenset[str]) -> None:
        self._told[bucket] = last
        heads = self.told
        for listener in list(self._listeners):
            listener(roots, heads)

    async def _run(self, beside: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await self._catch_up()
                await beside()
                wait_s = LOOK_S
            except StorageError:  # whoever reads or writes meanwhile is told; the next look says what was missed
                wait_s = _LOOK_AGAIN_S
            try:
                async with asyncio.timeout(wait_s):
                    await self._look.wait()
            except TimeoutError:
                pass
            self._look.clear()

    async def _catch_up(self) -> None:
        for bucket, head in enumerate(await self._heads()):
            before = self._told[bucket]
            if head <= before:
                continue
            roots = await self._moved(bucket, before, head)
            if head > self._told[bucket]:  # else a commit has told it meanwhile
                self._tell(bucket, head, frozenset(roots))
