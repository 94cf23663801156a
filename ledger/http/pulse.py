"""What is known of saddles in this server's memory: who was heard from, when and from where."""

from __future__ import annotations

from collections.abc import Callable

import msgspec


class Heard(msgspec.Struct, frozen=True):
    """The last word of a saddle; `at` in ns since the epoch."""

    at: int
    host: str | None = None
    version: str | None = None


class Pulse:
    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self.saddles: dict[str, Heard] = {}

    def heard(self, saddle: str, *, host: str | None = None, version: str | None = None) -> None:
        before = self.saddles.get(saddle, Heard(0))
        self.saddles[saddle] = Heard(self._clock(), host or before.host, version or before.version)
