"""Where streams lie: which root, and so which bucket; and whose a stream's number is. None of that ever changes, so a
server asks for it once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set

from ledger.store.postgres_database import Connection, Database

_KNOWN_MAX = 100_000

Owner = tuple[str, str | None, str]  # the stream, its task and its root


class PlaceTaken(Exception):
    """A stream that was to be opened lies under another root already, in another bucket."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.stream = stream


class Places:
    """`bucket_of` gives the bucket of a root, and that of a stream's name."""

    def __init__(self, database: Database, bucket_of: Callable[[str], int]) -> None:
        self._database = database
        self.bucket_of = bucket_of
        self._known: dict[str, int] = {}
        self._under_way: dict[str, list[int]] = {}
        self._owners: dict[tuple[int, int], Owner] = {}

    async def bucket(self, stream: str) -> int | None:
        """The bucket that holds a stream; None where there is no such stream."""
        return (await self.buckets([stream])).get(stream)

    async def buckets(self, streams: Iterable[str]) -> dict[str, int]:
        """The buckets of these streams; unknown ones are left out."""
        found: dict[str, int] = {}
        asked: dict[int, list[str]] = {}
        for stream in streams:
            if (bucket := self._known.get(stream)) is not None:
                found[stream] = bucket
            elif stream in self._under_way:
                found[stream] = self._under_way[stream][0]
            else:
                asked.setdefault(self.bucket_of(stream), []).append(stream)
        for at, names in asked.items():
            rows = await self._database.rows(
                "SELECT stream, root FROM places WHERE bucket = $1 AND stream = ANY($2)", at, names
            )
            found.update((stream, self.bucket_of(root)) for stream, root in rows)
        self.learn({stream: found[stream] for names in asked.values() for stream in names if stream in found})
        return found

    def open_soon(self, streams: Iterable[str], bucket: int) -> None:
        """These may be opened in a bucket by an append that is under way: those that are called after it follow it
        there, until `open_no_more`."""
        for stream in streams:
            self._under_way.setdefault(stream, [bucket, 0])[1] += 1

    def open_no_more(self, streams: Iterable[str]) -> None:
        for stream in streams:
            self._under_way[stream][1] -= 1
            if self._under_way[stream][1] == 0:
                del self._under_way[stream]

    def learn(self, buckets: dict[str, int]) -> None:
        """Remembers places that are durable."""
        if len(self._known) + len(buckets) > _KNOWN_MAX:
            self._known.clear()
        self._known.update(buckets)

    async def owners(self, bucket: int, numbers: Set[int]) -> dict[int, Owner]:
        """Who has these stream numbers of a bucket."""
        found = {number: self._owners.get((bucket, number)) for number in numbers}
        asked = [number for number, owner in found.items() if owner is None]
        if asked:
            rows = await self._database.rows(
                "SELECT stream_n, stream, task_id, root FROM streams JOIN roots USING (bucket, root_n)"
                " WHERE bucket = $1 AND stream_n = ANY($2)",
                bucket,
                asked,
            )
            if len(self._owners) + len(rows) > _KNOWN_MAX:
                self._owners.clear()
            self._owners.update({(bucket, number): (stream, task, root) for number, stream, task, root in rows})
        return {number: owner or self._owners[bucket, number] for number, owner in found.items()}

    async def take(self, connection: Connection, roots: dict[str, str]) -> None:
        """Takes the places of new streams (name → root), in the transaction that opens them. Raises PlaceTaken.

        In the order of the buckets and names, so that no two transactions wait for each other in a circle."""
        asked: dict[int, list[str]] = {}
        for stream in sorted(roots):
            asked.setdefault(self.bucket_of(stream), []).append(stream)
        for at in sorted(asked):
            await self._take(connection, at, asked[at], [roots[stream] for stream in asked[at]])

    async def _take(self, connection: Connection, at: int, streams: Sequence[str], roots: Sequence[str]) -> None:
        rows = await connection.fetch(
            "INSERT INTO places (bucket, stream, root)"
            " SELECT $1::integer, stream, root FROM unnest($2::text[], $3::text[]) AS new (stream, root)"
            " ON CONFLICT DO NOTHING RETURNING stream",
            at,
            streams,
            roots,
        )
        taken = {stream for (stream,) in rows}
        for stream in streams:
            if stream not in taken:
                raise PlaceTaken(stream)
