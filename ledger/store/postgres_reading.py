"""What is read from a PostgreSQL ledger. Every query names its bucket; what lies in several is asked for in each."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from ledger.events.model import END_SEQ, Recorded
from ledger.store.base import Delivery, DeliveryTotals, Heads, Loser, Seal, StreamInfo
from ledger.store.postgres_database import Database
from ledger.store.postgres_places import Places

_READ_BYTES_MAX = 16 * 2**20
_COUNTS = ("deliveries", "duplicates", "conflicts", "late", "results_repeated")
_STREAM_INFO = (
    "SELECT stream, task_id, root, saddle, contiguous, high_seq, events, last_recorded_at"
    " FROM streams JOIN roots USING (bucket, root_n) "
)


def _recorded(where: str, order: str, limit: str) -> str:
    """The query for events: at most `limit`, and fewer where their payloads weigh much."""
    columns = "position, stream_n, seq, kind, actor, at, recorded_at, payload, digest, extra"
    weighed = (
        f"SELECT {columns}, sum(octet_length(payload)) OVER (ORDER BY {order} ROWS UNBOUNDED PRECEDING)"
        f" - octet_length(payload) AS before FROM events WHERE {where} ORDER BY {order} LIMIT {limit}"
    )
    return f"SELECT {columns} FROM ({weighed}) weighed WHERE before < {_READ_BYTES_MAX} ORDER BY {order}"


_STREAM_N = "(SELECT stream_n FROM streams WHERE bucket = $1 AND stream = $2)"
_OF_STREAM = _recorded(f"bucket = $1 AND stream_n = {_STREAM_N} AND seq >= $3", "seq", "$4")
_OF_STREAM_BACKWARD = _recorded(f"bucket = $1 AND stream_n = {_STREAM_N} AND seq <= $3", "seq DESC", "$4")
_OF_ROOT = _recorded(
    "bucket = $1 AND root_n = (SELECT root_n FROM roots WHERE bucket = $1 AND root = $2) AND position > $3",
    "position",
    "$4",
)
_OF_BUCKET = _recorded("bucket = $1 AND position > $2", "position", "$3")
_DECISIVE_OF_BUCKET = _recorded("bucket = $1 AND position > $2 AND decisive", "position", "$3")


class PostgresReading:
    """The reading half of the store."""

    def __init__(self, database: Database, places: Places, buckets: int) -> None:
        self._database = database
        self._places = places
        self._all_buckets = list(range(buckets))

    def bucket_of(self, root: str) -> int:
        raise NotImplementedError

    def _unwritten(self, bucket: int) -> AbstractAsyncContextManager[Mapping[int, list[int]]]:
        """Deliveries that were counted and are not written yet, by stream number; none is written meanwhile."""
        raise NotImplementedError

    async def _in_place(self, stream: str, sql: str, *values: Any) -> list[Any]:
        """The rows of a query in a stream's bucket, whose first values are the bucket and the stream."""
        bucket = await self._places.bucket(stream)
        return [] if bucket is None else await self._database.rows(sql, bucket, stream, *values)

    async def _events(self, bucket: int, sql: str, *values: Any) -> list[Recorded]:
        """The events of a query of `_recorded`. Whose they are is looked up apart: it never changes, so a server asks
        once, and no join depends on the planner's knowledge of a table that grows."""
        rows = await self._database.rows(sql, bucket, *values)
        owners = await self._places.owners(bucket, {row[1] for row in rows})
        events = []
        for position, stream_n, seq, kind, actor, at, recorded_at, payload, digest, extra in rows:
            stream, task_id, root = owners[stream_n]
            events.append(
                Recorded(
                    position, bucket, stream, seq, kind, actor, at, recorded_at, task_id, root, payload, digest, extra
                )
            )
        return events

    async def heads(self) -> Heads:
        rows = await self._database.rows(
            "SELECT position FROM counters WHERE bucket = ANY($1) ORDER BY bucket", self._all_buckets
        )
        return tuple(position for (position,) in rows)

    async def stream(self, stream: str) -> StreamInfo | None:
        rows = await self._in_place(stream, _STREAM_INFO + "WHERE bucket = $1 AND stream = $2")
        return StreamInfo(*rows[0]) if rows else None

    async def streams_of(self, root: str, *, after: str = "", limit: int = 1000) -> list[StreamInfo]:
        rows = await self._database.rows(
            _STREAM_INFO + "WHERE bucket = $1 AND root = $2 AND stream > $3 ORDER BY stream LIMIT $4",
            self.bucket_of(root),
            root,
            after,
            limit,
        )
        return [StreamInfo(*row) for row in rows]

    async def last_recorded_at(self, streams: Sequence[str]) -> dict[str, int]:
        by_bucket: dict[int, list[str]] = {}
        for stream, bucket in (await self._places.buckets(streams)).items():
            by_bucket.setdefault(bucket, []).append(stream)
        found: dict[str, int] = {}
        for bucket, names in by_bucket.items():
            found.update(
                await self._database.rows(
                    "SELECT stream, last_recorded_at FROM streams WHERE bucket = $1 AND stream = ANY($2)",
                    bucket,
                    names,
                )
            )
        return found

    async def read_stream(
        self, stream: str, *, from_seq: int = -1, limit: int = 1000, backward: bool = False
    ) -> list[Recorded]:
        bucket = await self._places.bucket(stream)
        if bucket is None:
            return []
        return await self._events(bucket, _OF_STREAM_BACKWARD if backward else _OF_STREAM, stream, from_seq, limit)

    async def read_root(self, root: str, *, after: int = 0, limit: int = 1000) -> list[Recorded]:
        return await self._events(self.bucket_of(root), _OF_ROOT, root, after, limit)

    async def read_feed(self, after: Heads, *, limit: int = 1000, decisive: bool = False) -> list[Recorded]:
        sql = _DECISIVE_OF_BUCKET if decisive else _OF_BUCKET
        events: list[Recorded] = []
        read_bytes = 0
        for bucket in await self._moved_buckets(after):
            if len(events) == limit or read_bytes > _READ_BYTES_MAX:
                break
            events += await self._events(bucket, sql, after[bucket], limit - len(events))
            read_bytes = sum(len(event.payload) for event in events)
        return events

    async def _moved_buckets(self, after: Heads) -> list[int]:
        return [bucket for bucket, head in enumerate(await self.heads()) if head > after[bucket]]

    async def roots_moved(self, after: Heads, *, limit: int = 1000) -> list[str]:
        """Within a bucket by position; buckets are merged by the time of what moved last."""
        by_bucket = [
            await self._database.rows(
                "SELECT max(recorded_at), root FROM events JOIN roots USING (bucket, root_n)"
                " WHERE bucket = $1 AND position > $2 GROUP BY root ORDER BY max(position) DESC LIMIT $3",
                bucket,
                after[bucket],
                limit,
            )
            for bucket in await self._moved_buckets(after)
        ]
        merged = heapq.merge(*by_bucket, key=lambda row: -int(row[0]))
        return [root for _, root in merged][:limit]

    async def roots_between(self, bucket: int, after: int, until: int) -> list[str]:
        """The roots with events at the positions after `after` and up to `until`."""
        rows = await self._database.rows(
            "SELECT root FROM roots WHERE bucket = $1 AND root_n IN"
            " (SELECT root_n FROM events WHERE bucket = $1 AND position > $2 AND position <= $3)",
            bucket,
            after,
            until,
        )
        return [root for (root,) in rows]

    async def gaps(self, stream: str, *, limit: int = 100) -> list[tuple[int, int]]:
        found = await self._in_place(
            stream,
            "SELECT high_seq + 1 - events"
            " + (SELECT count(*) FROM events e"
            f" WHERE e.bucket = $1 AND e.stream_n = s.stream_n AND seq IN (-1, {END_SEQ}))"
            " FROM streams s WHERE bucket = $1 AND stream = $2",
        )
        if not found or found[0][0] == 0:  # as many as there are seqs: no need to walk them
            return []
        rows = await self._in_place(
            stream,
            "SELECT before + 1, seq - 1 FROM ("
            "  SELECT seq, lag(seq, 1, -1::bigint) OVER (ORDER BY seq) AS before FROM events"
            f"  WHERE bucket = $1 AND stream_n = {_STREAM_N} AND seq BETWEEN 0 AND {END_SEQ - 1}) arrived"
            " WHERE seq > before + 1 ORDER BY seq LIMIT $3",
            limit,
        )
        return [(first, last) for first, last in rows]

    async def losers(self, stream: str, *, limit: int = 100) -> list[Loser]:
        rows = await self._in_place(
            stream,
            "SELECT $2::text, seq, kind, actor, payload, digest, at, received_at FROM losers"
            f" WHERE bucket = $1 AND stream_n = {_STREAM_N} ORDER BY seq, received_at, digest LIMIT $3",
            limit,
        )
        return [Loser(*row) for row in rows]

    async def deliveries(self, root: str) -> list[Delivery]:
        bucket = self.bucket_of(root)
        async with self._unwritten(bucket) as unwritten:
            rows = await self._database.rows(
                f"SELECT stream, stream_n, {', '.join(_COUNTS)}"
                " FROM roots JOIN streams USING (bucket, root_n) LEFT JOIN deliveries USING (bucket, stream_n)"
                " WHERE bucket = $1 AND root = $2 ORDER BY stream",
                bucket,
                root,
            )
            counted = [
                Delivery(stream, *(a + (b or 0) for a, b in zip(unwritten.get(n, [0] * 5), counts, strict=True)))
                for stream, n, *counts in rows
            ]
        return [delivery for delivery in counted if delivery.deliveries]

    async def delivery_totals(self) -> list[DeliveryTotals]:
        totals: dict[str, list[int]] = {}
        for bucket in self._all_buckets:
            async with self._unwritten(bucket) as unwritten:
                rows = await self._totals(bucket, [[n, *counts] for n, counts in unwritten.items()])
            for saddle, *counts in rows:
                held = totals.get(saddle, [0] * len(counts))
                totals[saddle] = [a + b for a, b in zip(held, counts, strict=True)]
        return [DeliveryTotals(saddle, *totals[saddle]) for saddle in sorted(totals)]

    async def _totals(self, bucket: int, unwritten: Sequence[Sequence[int]]) -> list[Any]:
        columns = [list(column) for column in zip(*unwritten, strict=True)] or [[] for _ in range(6)]
        arrays = ", ".join(f"${n}::bigint[]" for n in range(2, 8))
        sums = ", ".join(f"coalesce(sum({name}), 0)::bigint AS {name}" for name in _COUNTS)
        return await self._database.rows(
            f"SELECT saddle, count(*), sum(events)::bigint, {sums} FROM streams LEFT JOIN ("
            f" SELECT stream_n, {sums} FROM ("
            f"  SELECT stream_n, {', '.join(_COUNTS)} FROM deliveries WHERE bucket = $1"
            f"  UNION ALL SELECT * FROM unnest({arrays})) counted"
            " GROUP BY stream_n) summed USING (stream_n)"
            " WHERE bucket = $1 AND substr(stream, 1, 1) <> '@' GROUP BY saddle",
            bucket,
            *columns,
        )

    async def seals(self, bucket: int, *, after: int = 0, limit: int = 1000) -> list[Seal]:
        rows = await self._database.rows(
            "SELECT bucket, number, first, last, digest FROM seals"
            " WHERE bucket = $1 AND number > $2 ORDER BY number LIMIT $3",
            bucket,
            after,
            limit,
        )
        return [Seal(*row) for row in rows]
