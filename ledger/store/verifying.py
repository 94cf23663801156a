"""Recomputes the chain of seals over what is stored, and names the first transaction that does not match."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import msgspec

from ledger.events.content import content_digest
from ledger.events.model import Recorded
from ledger.store import sealing
from ledger.store.base import Heads, Seal, Store

_EVENTS_AT_ONCE = 200  # of at most 4 MiB each
_SEALS_AT_ONCE = 1000
_BEHIND_ALL = 2**63 - 1


class Verdict(msgspec.Struct, frozen=True):
    """What a walk over all seals found.

    `events` and `seals` count what was found good. `head` is the last good link of each bucket in hex: print
    it, keep it elsewhere, and give it as `expect` another time. Where `ok` is false, `what` says what is wrong;
    `bucket`, `seal` (its number) and the positions `first`..`last` say where, or are None where it is no one
    place.
    """

    ok: bool
    events: int
    seals: int
    head: tuple[str, ...]
    what: str = ""
    bucket: int | None = None
    seal: int | None = None
    first: int | None = None
    last: int | None = None


async def verify(store: Store, *, expect: str | None = None) -> Verdict:
    """Walks all that the store held when the call began, in bounded memory; writers may go on meanwhile.

    `expect` is a link of an earlier verdict's `head`: if it does not occur in the chain, something was cut
    off or written anew since. Raises StorageError where the store cannot be read.
    """
    wanted = expect.strip().lower() if expect else None
    walks = [_Walk(store, bucket, head, wanted) for bucket, head in enumerate(await store.heads())]
    damage = None
    for walk in walks:
        try:
            await walk.run()
        except _Damage as found:
            damage = found
            break
    return _verdict(walks, damage, wanted)


def _verdict(walks: list[_Walk], damage: _Damage | None, wanted: str | None) -> Verdict:
    found = Verdict(
        ok=True,
        events=sum(walk.position for walk in walks),
        seals=sum(walk.number for walk in walks),
        head=tuple(walk.link.hex() for walk in walks),
    )
    if damage:
        return msgspec.structs.replace(
            found,
            ok=False,
            what=damage.what,
            bucket=damage.bucket,
            seal=damage.seal,
            first=damage.first,
            last=damage.last,
        )
    if wanted and not any(walk.expected_seen for walk in walks):
        what = f"the seal {wanted} does not occur in the chain: events were cut off, or this is another ledger"
        return msgspec.structs.replace(found, ok=False, what=what)
    return found


class _Damage(Exception):
    """The first place of a bucket that does not hold."""

    def __init__(self, what: str, bucket: int, seal: int, first: int, last: int) -> None:
        super().__init__(what)
        self.what, self.bucket, self.seal, self.first, self.last = what, bucket, seal, first, last


class _Walk:
    """A walk along one bucket's chain. `position`, `number` and `link` say up to where it was found good."""

    def __init__(self, store: Store, bucket: int, head: int, wanted: str | None) -> None:
        self._store = store
        self._bucket = bucket
        self._head = head
        self._wanted = wanted
        self.position = 0
        self.number = 0
        self.link = sealing.first_link(store.ledger_id, bucket)
        self.expected_seen = self.link.hex() == wanted

    async def run(self) -> None:
        """Raises _Damage at the first seal that does not hold."""
        async with aclosing(self._events()) as events:
            while self.position < self._head:
                seals = await self._store.seals(self._bucket, after=self.number, limit=_SEALS_AT_ONCE)
                if not seals:
                    raise self._unsealed(self._head)
                for seal in seals:
                    await self._check(seal, events)
                    if self.position >= self._head:
                        break
        await self._check_end()

    async def _check(self, seal: Seal, events: AsyncIterator[Recorded]) -> None:
        if seal.number != self.number + 1:
            what = f"seal {self.number + 1} is missing"
            raise _Damage(what, self._bucket, self.number + 1, self.position + 1, seal.first - 1)
        if seal.first != self.position + 1:
            raise self._at(seal, f"it begins at position {seal.first}, where {self.position + 1} comes next")
        rows = []
        for position in range(seal.first, seal.last + 1):
            event = await anext(events, None)
            if event is None or event.position != position:
                raise self._at(seal, f"position {position}, which it covers, is missing")
            if event.digest != content_digest(event.kind, event.actor, event.payload):
                raise self._at(seal, f"the content of position {position} was changed")
            rows.append(sealing.row_of(event))
        link = sealing.link(self.link, rows)
        if link != seal.digest:
            raise self._at(seal, "the rows that it covers, or the seal itself, were changed")
        self.position, self.number, self.link = seal.last, seal.number, link
        self.expected_seen = self.expected_seen or link.hex() == self._wanted

    async def _check_end(self) -> None:
        """Behind the head, events and seals must go together. A writer commits both at once, so whichever of
        the two is read second must be there."""
        seals = await self._store.seals(self._bucket, after=self.number, limit=1)
        events = await self._store.read_feed(self._only_after(self.position), limit=1)
        if seals and not events:
            raise self._at(seals[0], "the rows that it covers are missing")
        if events and not seals and not await self._store.seals(self._bucket, after=self.number, limit=1):
            raise self._unsealed(events[0].position)

    async def _events(self) -> AsyncGenerator[Recorded, None]:
        position = 0
        while position < self._head:
            page = await self._store.read_feed(self._only_after(position), limit=_EVENTS_AT_ONCE)
            if not page:
                return
            for event in page:
                yield event
            position = page[-1].position

    def _only_after(self, position: int) -> Heads:
        heads = [_BEHIND_ALL] * self._store.buckets
        heads[self._bucket] = position
        return tuple(heads)

    def _at(self, seal: Seal, what: str) -> _Damage:
        return _Damage(f"seal {seal.number}: {what}", self._bucket, seal.number, seal.first, seal.last)

    def _unsealed(self, last: int) -> _Damage:
        first = self.position + 1
        what = f"the positions {first} to {last} lie under no seal"
        return _Damage(what, self._bucket, self.number + 1, first, last)
