"""The statements of a transaction: those with values of any kind, and those of numbers alone.

The latter are written out and sent as one script with COMMIT, which saves a round trip for each, while the bucket's
counter row is locked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ledger.store.postgres_database import Connection
from ledger.store.staging import Group


class Counters(msgspec.Struct, frozen=True):
    """The counter row of a bucket."""

    bucket: int
    moves: int
    position: int
    seal: int
    link: bytes
    streams: int
    roots: int

    def lock(self) -> str:
        """Begins a transaction and locks the row if it is still as it is here (its status is then `SELECT 1`)."""
        return f"BEGIN; SELECT 1 FROM counters WHERE bucket = {self.bucket} AND moves = {self.moves} FOR UPDATE"

    def after(self, group: Group, link: bytes) -> Counters:
        """The row once the group is written."""
        return Counters(
            self.bucket,
            self.moves + 1,
            group.position,
            self.seal + bool(group.rows),
            link,
            group.stream_n,
            group.root_n,
        )


def written(before: Counters, now: Counters, group: Group, tallies: Mapping[int, Sequence[int]]) -> list[str]:
    """The end of a transaction: streams, tallies, seal, counters, COMMIT."""
    bucket, script = before.bucket, []
    moved = [
        f"({known.stream_n},{known.high_seq},{known.events},{known.last_recorded_at})"
        for name, known in group.streams.items()
        if name not in group.opened
    ]
    if moved:
        script.append(
            "UPDATE streams SET high_seq = new.high_seq, events = new.events, last_recorded_at = new.at"
            f" FROM (VALUES {','.join(moved)}) AS new (stream_n, high_seq, events, at)"
            f" WHERE streams.bucket = {bucket} AND streams.stream_n = new.stream_n"
        )
    if tallies:
        script.append(tallied(bucket, tallies))
    if group.rows:
        script.append(
            "INSERT INTO seals (bucket, number, first, last, digest)"
            f" VALUES ({bucket}, {now.seal}, {group.first}, {group.position}, {_bytes(now.link)})"
        )
    script.append(
        f"UPDATE counters SET moves = {now.moves}, position = {now.position}, seal = {now.seal},"
        f" link = {_bytes(now.link)}, streams = {now.streams}, roots = {now.roots} WHERE bucket = {bucket}"
    )
    return [*script, "COMMIT"]


def tallied(bucket: int, tallies: Mapping[int, Sequence[int]]) -> str:
    """Adds to the counts of deliveries."""
    rows = ",".join(f"({bucket},{stream_n},{','.join(map(str, tallies[stream_n]))})" for stream_n in sorted(tallies))
    columns = ("deliveries", "duplicates", "conflicts", "late", "results_repeated")
    added = ", ".join(f"{column} = deliveries.{column} + excluded.{column}" for column in columns)
    return (
        f"INSERT INTO deliveries (bucket, stream_n, {', '.join(columns)}) VALUES {rows}"
        f" ON CONFLICT (bucket, stream_n) DO UPDATE SET {added}"
    )


async def insert_roots(connection: Connection, bucket: int, group: Group) -> None:
    await connection.execute(
        "INSERT INTO roots (bucket, root_n, root) SELECT $1, * FROM unnest($2::bigint[], $3::text[])",
        bucket,
        list(group.roots.values()),
        list(group.roots),
    )


async def insert_streams(connection: Connection, bucket: int, group: Group) -> None:
    """The new streams, as the group leaves them."""
    opened = [known for name, known in group.streams.items() if name in group.opened]
    await connection.execute(
        "INSERT INTO streams (bucket, stream_n, stream, root_n, task_id, saddle, contiguous, high_seq, events,"
        " last_recorded_at) SELECT $1, * FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::text[],"
        " $7::boolean[], $8::bigint[], $9::bigint[], $10::bigint[])",
        bucket,
        [known.stream_n for known in opened],
        [known.stream for known in opened],
        [known.root_n for known in opened],
        [known.task_id for known in opened],
        [known.saddle for known in opened],
        [known.contiguous for known in opened],
        [known.high_seq for known in opened],
        [known.events for known in opened],
        [known.last_recorded_at for known in opened],
    )


async def insert_losers(connection: Connection, bucket: int, group: Group) -> None:
    await connection.execute(
        "INSERT INTO losers (bucket, stream_n, seq, digest, kind, actor, payload, at, received_at)"
        " SELECT $1, * FROM unnest($2::bigint[], $3::bigint[], $4::bytea[], $5::text[], $6::text[], $7::bytea[],"
        " $8::bigint[], $9::bigint[]) ON CONFLICT DO NOTHING",
        bucket,
        *(list(column) for column in zip(*group.losers, strict=True)),
    )


def _bytes(value: bytes) -> str:
    return f"'\\x{value.hex()}'"
