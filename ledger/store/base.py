"""The narrow interface of every store, and what is said across it.

One append-only log of streams. A stream is a session or one of the ledger's own (`@goal/7`); it lies under one
root for ever, and a root lies in one bucket. The identity of an event is `(stream, seq)`; first write wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import msgspec

from ledger.events.model import NewEvent, Recorded

Heads = tuple[int, ...]  # the last position of each bucket; 0 where it is empty
Listener = Callable[[frozenset[str], Heads], None]  # the roots that a commit touched, and the heads after it


def beyond(heads: Heads, events: Iterable[Recorded]) -> Heads:
    """The heads of a reader who stood at `heads` and has read these events since."""
    reached = list(heads)
    for event in events:
        reached[event.bucket] = max(reached[event.bucket], event.position)
    return tuple(reached)


class Opening(msgspec.Struct, frozen=True):
    """How a stream is registered when it is first written. `event`, if given, lands in its slot at the same time:
    session.opened for a session; the ledger's own streams need none."""

    root: str
    task_id: str | None
    saddle: str
    contiguous: bool = False
    event: NewEvent | None = None


class Write(msgspec.Struct, frozen=True):
    """Events for one stream.

    - `opening` registers the stream if it is new. If it exists under the same task it changes nothing; under
      another task the append fails with SessionElsewhere.
    - `saddle`, if given, must be the one that opened the stream, else it looks unknown (NotFound).
    - `expected_seq`, if given, is the last seq that the writer has seen (OPENING_SEQ: none but the opening, if it is
      there at all; NO_EVENTS: the stream must not exist); if the stream has moved, the whole append fails with
      StreamMoved. `result` in the end slot does not count.
    """

    stream: str
    events: Sequence[NewEvent] = ()
    opening: Opening | None = None
    saddle: str | None = None
    expected_seq: int | None = None


class Written(msgspec.Struct, frozen=True):
    """What became of one Write. `stored` and `duplicates` count `events`, not the opening; `conflicts` are the seqs
    (-1: the opening) that are held with other content; `opened` says that the stream was new. `high_seq` is the
    highest seq of the stream below the end slot, -1 if there is none."""

    stored: int
    duplicates: int
    conflicts: tuple[int, ...]
    high_seq: int
    opened: bool
    task_id: str | None
    root: str
    contiguous: bool


class Appended(msgspec.Struct, frozen=True):
    writes: tuple[Written, ...]
    heads: Heads


class StreamInfo(msgspec.Struct, frozen=True):
    """A registered stream. `events` counts all its rows, the opening included; `last_recorded_at` in ns."""

    stream: str
    task_id: str | None
    root: str
    saddle: str
    contiguous: bool
    high_seq: int
    events: int
    last_recorded_at: int


class Delivery(msgspec.Struct, frozen=True):
    """How the events of one stream came in: kept beside the log, no part of any narrative.

    `deliveries` counts pushes, `duplicates` the events that came again, `conflicts` those that came with other
    content, `late` those below a higher seq that was there before, `results_repeated` the results that came again.
    """

    stream: str
    deliveries: int = 0
    duplicates: int = 0
    conflicts: int = 0
    late: int = 0
    results_repeated: int = 0


class DeliveryTotals(msgspec.Struct, frozen=True):
    """How the events of all sessions that a saddle opened came in: `sessions`, and the `events` that are stored of
    them (their openings included); the others count as in `Delivery`."""

    saddle: str
    sessions: int
    events: int
    deliveries: int
    duplicates: int
    conflicts: int
    late: int
    results_repeated: int


class Loser(msgspec.Struct, frozen=True):
    """The other content of a slot that was taken: kept, never part of the log. `received_at` in ns."""

    stream: str
    seq: int
    kind: str
    actor: str
    payload: bytes
    digest: bytes
    at: int | None
    received_at: int


class Seal(msgspec.Struct, frozen=True):
    """One transaction's link of the chain: it covers the positions `first`..`last` of `bucket`."""

    bucket: int
    number: int
    first: int
    last: int
    digest: bytes


class Token(msgspec.Struct, frozen=True):
    """An access token as it is kept: never the token, only its SHA-256. Times in ns."""

    id: str
    role: str
    name: str
    hash: bytes
    created_at: int
    expires_at: int | None = None
    revoked_at: int | None = None


class Checkpoint(msgspec.Struct, frozen=True):
    """A folded state at a position, kept to shorten the next fold. Dropping it changes no answer."""

    version: str
    position: int
    state: bytes


class Store(Protocol):
    """All methods raise StorageError (or a subclass) where the store fails, and never a driver's own error.

    A read of events gives at most `limit` of them, and fewer where their payloads weigh much: only an empty answer
    says that there are no more.

    An append names each of its streams once, and all of them lie in one bucket (else ValueError). It is atomic over
    all its writes and durable before it returns. Concurrent appends may share a transaction; each is decided
    alone, in the order in which they were called.
    """

    ledger_id: str  # 16 hex digits, made once
    buckets: int

    def bucket_of(self, root: str) -> int: ...

    async def append(self, writes: Sequence[Write]) -> Appended: ...

    async def heads(self) -> Heads: ...

    async def stream(self, stream: str) -> StreamInfo | None: ...

    async def streams_of(self, root: str, *, after: str = "", limit: int = 1000) -> list[StreamInfo]:
        """The streams under a root, by name."""
        ...

    async def last_recorded_at(self, streams: Sequence[str]) -> dict[str, int]:
        """When each of these streams was last appended to, in ns; unknown ones are left out."""
        ...

    async def read_stream(
        self, stream: str, *, from_seq: int = -1, limit: int = 1000, backward: bool = False
    ) -> list[Recorded]:
        """The events of a stream with seq >= from_seq in seq order; backward: seq <= from_seq, falling."""
        ...

    async def read_root(self, root: str, *, after: int = 0, limit: int = 1000) -> list[Recorded]:
        """The events under a root with position > after, in position order."""
        ...

    async def read_feed(self, after: Heads, *, limit: int = 1000, decisive: bool = False) -> list[Recorded]:
        """The events after the heads given, in position order within each bucket; `decisive`: only those that can
        change a status."""
        ...

    async def roots_moved(self, after: Heads, *, limit: int = 1000) -> list[str]:
        """The roots with events after the heads given; the most recently moved first."""
        ...

    async def gaps(self, stream: str, *, limit: int = 100) -> list[tuple[int, int]]:
        """The ranges of seq between 0 and the stream's high_seq that have not arrived, both ends included."""
        ...

    async def losers(self, stream: str, *, limit: int = 100) -> list[Loser]: ...

    async def deliveries(self, root: str) -> list[Delivery]: ...

    async def delivery_totals(self) -> list[DeliveryTotals]:
        """Over all roots, by saddle; the ledger's own streams are left out."""
        ...

    async def seals(self, bucket: int, *, after: int = 0, limit: int = 1000) -> list[Seal]: ...

    async def load_checkpoint(self, name: str, version: str) -> Checkpoint | None: ...

    async def save_checkpoint(self, name: str, checkpoint: Checkpoint) -> None: ...

    async def tokens(self) -> list[Token]: ...

    async def put_token(self, token: Token) -> None:
        """Adds a token, or replaces the one with its id."""
        ...

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Calls `listener` after each commit that stored events; it must not block. Returns what ends it."""
        ...

    async def close(self) -> None: ...
