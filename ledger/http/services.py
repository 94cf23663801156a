"""What the handlers of one server share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
from starlette.requests import HTTPConnection
from starlette.responses import Response

from ledger.commands.decisions import Decisions
from ledger.commands.incidents import IncidentCommands
from ledger.commands.incidents_reading import Incidents
from ledger.commands.loop_reading import LoopReader
from ledger.commands.remediation import RemediationCommands
from ledger.commands.remediation_reading import Runs
from ledger.commands.sessions import SessionCommands
from ledger.errors import ForeignCursor
from ledger.events.model import Limits
from ledger.following import Folding
from ledger.http.auth import Access
from ledger.http.bodies import Admission
from ledger.http.hub import Hub
from ledger.http.metrics import Metrics
from ledger.http.page_cache import PageCache
from ledger.http.pulse import Pulse
from ledger.reader import Reader
from ledger.store import cursors
from ledger.store.base import Heads, Store
from ledger.store.search_base import SearchIndex
from projections.trends import TRENDS


class Services:
    """One server's parts. `clock` gives nanoseconds since the Unix epoch (UTC); `search` is None where there is no
    index."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Callable[[], int],
        secret: bytes,
        limits: Limits,
        silent_after_ns: int,
        search: SearchIndex | None = None,
    ) -> None:
        self.store = store
        self.clock = clock
        self.limits = limits
        self.silent_after_ns = silent_after_ns
        self.reader = Reader(store)
        self.search = search
        self.trends = Folding(store, TRENDS)
        numbering = asyncio.Lock()
        self.decisions = Decisions(store, self.reader, numbering)
        self.sessions = SessionCommands(store, self.reader, numbering)
        self.runs = Runs(store, self.reader)
        self.loops = LoopReader(store, self.reader)
        self.remediation = RemediationCommands(store, self.runs, limits.payload_bytes)
        self.incidents = Incidents(store)
        self.incident_commands = IncidentCommands(store, self.incidents)
        self.access = Access(store, clock, secret)
        self.admission = Admission(limits)
        self.decoding = asyncio.Lock()  # held while a large body is decoded
        self.pages = PageCache(store)  # before the hub: a page is forgotten before anybody is told that it moved
        self.hub = Hub(store)
        self.pulse = Pulse(clock)
        self.metrics = Metrics(self.hub, self.admission)

    def cursor(self, heads: Heads) -> str:
        return cursors.encode(self.store.ledger_id, heads)

    async def heads(self, cursor: str) -> Heads:
        """Raises ForeignCursor, also for a cursor that is ahead of the log: after a return to an older backup its
        reader would miss in silence all that comes up to there."""
        heads = cursors.decode(cursor, self.store.ledger_id, self.store.buckets)
        now = await self.store.heads()
        if any(head > last for head, last in zip(heads, now, strict=True)):
            raise ForeignCursor(f"the cursor stands at {sum(heads)}, and this ledger goes to {sum(now)}")
        return heads


def services(connection: HTTPConnection) -> Services:
    found: Services = connection.app.state.services
    return found


_encode = msgspec.json.Encoder().encode


def as_json(value: Any, status: int = 200) -> Response:
    return Response(_encode(value), status, media_type="application/json")
