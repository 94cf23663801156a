"""GET /api/live: server-sent events that say which roots have moved.

The id of each message is the cursor, so a reader that comes back with Last-Event-ID is told
first what moved while it was away.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ledger.http.auth import READER, require
from ledger.http.hub import Listener
from ledger.http.services import Services, services
from ledger.store.base import Heads

KEEPALIVE_S = 15.0
ROOTS_TOLD_MAX = 1000  # beyond it the message says `all`


async def live(request: Request) -> Response:
    """`root` may be given several times; without it all roots are told."""
    at = services(request)
    require(await at.access.caller(request), READER)
    last_seen = request.headers.get("last-event-id") or request.query_params.get("after")
    since = at.heads(last_seen) if last_seen else None
    roots = frozenset(request.query_params.getlist("root"))
    listener = at.hub.listen(roots)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_stream(at, listener, roots, since), media_type="text/event-stream", headers=headers)


async def _stream(
    at: Services, listener: Listener, roots: frozenset[str], since: Heads | None
) -> AsyncIterator[bytes]:
    try:
        heads = await at.store.heads()
        missed: list[str] = []
        if since is not None:
            missed = await at.store.roots_moved(since, limit=ROOTS_TOLD_MAX)
            behind = sum(now - then for now, then in zip(heads, since, strict=True))
            yield _message("caught-up", at.cursor(heads), {"events": behind, **_told(missed, roots)})
        else:
            yield _message("hello", at.cursor(heads), {})
        while True:
            moved = await listener.moved(KEEPALIVE_S)
            if at.hub.closing:
                return
            if not moved:
                yield b": still here\n\n"
                continue
            heads = await at.store.heads()
            yield _message("moved", at.cursor(heads), _told(sorted(moved), frozenset()))
    finally:
        at.hub.leave(listener)


def _told(moved: list[str], wanted: frozenset[str]) -> dict[str, object]:
    if len(moved) >= ROOTS_TOLD_MAX:
        return {"roots": sorted(wanted), "all": not wanted}
    return {"roots": [root for root in moved if not wanted or root in wanted]}


def _message(event: str, cursor: str, data: dict[str, object]) -> bytes:
    body = msgspec.json.encode({**data, "cursor": cursor})
    return b"event: %s\nid: %s\ndata: %s\n\n" % (event.encode(), cursor.encode(), body)
