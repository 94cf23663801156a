"""Keys in rising order, never changed in place: what the folds keep where a Map has no order.

Two levels of tuples. An insertion copies one short tuple of keys and the tuple of tuples, so a hundred thousand
keys cost about a microsecond each, and every older value stays valid.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any, Generic, Protocol, TypeVar

import msgspec

CHUNK_MAX = 256


class Comparable(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


K = TypeVar("K", bound=Comparable)


class Ordered(msgspec.Struct, Generic[K], frozen=True):
    """An immutable sorted set of keys that compare with each other. No chunk is empty."""

    chunks: tuple[tuple[K, ...], ...] = ()
    size: int = 0

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[K]:
        for chunk in self.chunks:
            yield from chunk

    def add(self, key: K) -> Ordered[K]:
        """With `key` in its place; the same set if it is there already."""
        if not self.chunks:
            return Ordered(((key,),), 1)
        index = self._chunk_of(key)
        chunk = self.chunks[index]
        place = bisect_left(chunk, key)
        if place < len(chunk) and chunk[place] == key:
            return self
        return self._with_chunk(index, (*chunk[:place], key, *chunk[place:]), self.size + 1)

    def remove(self, key: K) -> Ordered[K]:
        """Without `key`; the same set if it is not there."""
        if not self.chunks:
            return self
        index = self._chunk_of(key)
        chunk = self.chunks[index]
        place = bisect_left(chunk, key)
        if place == len(chunk) or chunk[place] != key:
            return self
        return self._with_chunk(index, chunk[:place] + chunk[place + 1 :], self.size - 1)

    def falling(self, below: K | None = None) -> Iterator[K]:
        """The keys from the greatest down, only those smaller than `below` if it is given."""
        if not self.chunks:
            return
        last = len(self.chunks) - 1 if below is None else self._chunk_of(below)
        for index in range(last, -1, -1):
            chunk = self.chunks[index]
            end = len(chunk)
            if below is not None and index == last:
                end = bisect_left(chunk, below)
            for place in range(end - 1, -1, -1):
                yield chunk[place]

    def after(self, key: K) -> K | None:
        """The smallest key greater than `key`, None if there is none."""
        if not self.chunks:
            return None
        index = self._chunk_of(key)
        chunk = self.chunks[index]
        place = bisect_right(chunk, key)
        if place < len(chunk):
            return chunk[place]
        return self.chunks[index + 1][0] if index + 1 < len(self.chunks) else None

    def before(self, key: K) -> K | None:
        """The greatest key smaller than `key`, None if there is none."""
        return next(self.falling(below=key), None)

    def spread(self, count: int) -> list[K]:
        """At most `count` keys, evenly spaced, the greatest among them; rising."""
        places = sorted({(one + 1) * self.size // count - 1 for one in range(count)} - {-1})
        found: list[K] = []
        passed = 0
        for chunk in self.chunks:
            while len(found) < len(places) and places[len(found)] < passed + len(chunk):
                found.append(chunk[places[len(found)] - passed])
            passed += len(chunk)
        return found

    def _chunk_of(self, key: K) -> int:
        return max(0, bisect_right(self.chunks, key, key=_first) - 1)

    def _with_chunk(self, index: int, chunk: tuple[K, ...], size: int) -> Ordered[K]:
        parts: tuple[tuple[K, ...], ...] = (chunk,) if chunk else ()
        if len(chunk) > CHUNK_MAX:
            # At the end, where nearly all keys come in, the full chunk stays whole and the next one begins.
            middle = len(chunk) - 1 if index == len(self.chunks) - 1 else len(chunk) // 2
            parts = (chunk[:middle], chunk[middle:])
        return Ordered((*self.chunks[:index], *parts, *self.chunks[index + 1 :]), size)


def _first(chunk: tuple[K, ...]) -> K:
    return chunk[0]
