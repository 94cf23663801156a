"""How the events of a root came in, as the store counted them: how whole it is, and how often an end was said."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ledger.events.kinds import is_own_stream
from ledger.store.base import Delivery, Store, StreamInfo
from projections.goal import Integrity

STREAMS_COUNTED_MAX = 10_000
SAID_BY_SHOWN = 20


class Arrivals(msgspec.Struct, frozen=True):
    """Of the sessions under one root; `missing` are the seqs that have not arrived, counted by session."""

    streams: tuple[StreamInfo, ...]
    deliveries: dict[str, Delivery]
    missing: dict[str, int]

    def integrity(self, task_id: str | None = None) -> Integrity:
        """Of all sessions, or of those of one task."""
        names = self._names(task_id)
        counted = [self.deliveries[name] for name in names if name in self.deliveries]
        return Integrity(
            deliveries=sum(delivery.deliveries for delivery in counted),
            duplicates=sum(delivery.duplicates for delivery in counted),
            conflicts=sum(delivery.conflicts for delivery in counted),
            missing=sum(self.missing.get(name, 0) for name in names),
        )

    def by_session(self, task_id: str | None = None, *, limit: int) -> list[dict[str, Any]]:
        """The counts of single sessions, those first that lack most, conflict most and came again most."""
        rows = [
            {
                "session_id": name,
                "deliveries": found.deliveries,
                "duplicates": found.duplicates + found.results_repeated,
                "conflicts": found.conflicts,
                "missing": self.missing.get(name, 0),
            }
            for name in self._names(task_id)
            if (found := self.deliveries.get(name)) is not None
        ]
        rows.sort(
            key=lambda row: (row["missing"], row["conflicts"], row["duplicates"], row["deliveries"]), reverse=True
        )
        return rows[:limit]

    def sayings(self, said_by: Iterable[str]) -> int:
        """How often these streams delivered what ended an attempt: once each, and every result that came again."""
        return sayings(self.deliveries, said_by)

    def _names(self, task_id: str | None) -> list[str]:
        return [info.stream for info in self.streams if task_id is None or info.task_id == task_id]


def sayings(deliveries: dict[str, Delivery], said_by: Iterable[str]) -> int:
    return sum(1 + deliveries.get(stream, Delivery(stream)).results_repeated for stream in said_by)


async def deliveries_of(store: Store, root: str) -> dict[str, Delivery]:
    return {delivery.stream: delivery for delivery in await store.deliveries(root)}


async def arrivals(store: Store, root: str) -> Arrivals:
    """Of the first STREAMS_COUNTED_MAX streams of a root, by name."""
    deliveries = await deliveries_of(store, root)
    streams = [
        info for info in await store.streams_of(root, limit=STREAMS_COUNTED_MAX) if not is_own_stream(info.stream)
    ]
    missing = {}
    for info in streams:
        if info.contiguous:
            missing[info.stream] = sum(last - first + 1 for first, last in await store.gaps(info.stream))
    return Arrivals(tuple(streams), deliveries, missing)
