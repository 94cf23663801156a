"""A map that keeps only what was spoken of last, so that a fold over all roots stays of bounded size."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec
from immutables import Map

from projections.ordered import Ordered

V = TypeVar("V")


class Kept(msgspec.Struct, Generic[V], frozen=True, gc=False, array_like=True):
    value: V
    turn: int


class Recent(msgspec.Struct, Generic[V], frozen=True):
    """`turns` counts how often anything was put."""

    kept: Map[str, Kept[V]] = Map()
    order: Ordered[tuple[int, str]] = Ordered()
    turns: int = 0

    def __len__(self) -> int:
        return len(self.kept)

    def get(self, key: str) -> V | None:
        found = self.kept.get(key)
        return None if found is None else found.value

    def put(self, key: str, value: V, most: int) -> Recent[V]:
        """With `value` under `key`, which is now the newest. Beyond `most` keys the oldest are dropped."""
        kept, order = self.kept, self.order
        before = kept.get(key)
        if before is not None:
            order = order.remove((before.turn, key))
        kept, order = kept.set(key, Kept(value, self.turns)), order.add((self.turns, key))
        while len(order) > most:
            oldest = next(iter(order))
            kept, order = kept.delete(oldest[1]), order.remove(oldest)
        return Recent(kept, order, self.turns + 1)
