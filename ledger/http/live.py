"""GET /api/live: server-sent events that say which roots have moved.

The id of each message is the cursor, so a reader that comes back with Last-Event-ID is told
first what moved while it was away.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ledger.errors import Unauthenticated
from ledger.http.auth import READER, require
from ledger.http.services import services
from ledger.store.base import Heads

EVENT_STREAM = "text/event-stream"
KEEPALIVE_S = 15.0
ROOTS_TOLD_MAX = 1000  # beyond it the message says `all`


async def live(request: Request) -> Response:
    """`root` may be given several times; without it all roots are told."""
    at = services(request)
    require(await at.access.caller(request), READER)
    last_seen = request.headers.get("last-event-id") or request.query_params.get("after")
    since = await at.heads(last_seen) if last_seen else None
    roots = frozenset(request.query_params.getlist("root"))
    at.hub.check_room()
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    if request.method == "HEAD":  # a stream without a body would hold its connection for nothing
        return Response(media_type=EVENT_STREAM, headers=headers)
    return StreamingResponse(_stream(request, roots, since), media_type=EVENT_STREAM, headers=headers)


async def _stream(request: Request, roots: frozenset[str], since: Heads | None) -> AsyncIterator[bytes]:
    """It listens only once it is read from: a stream whose reader has gone before that is never ended by anybody. It
    ends, with nothing more told, where the token that opened it has expired or was revoked meanwhile."""
    at = services(request)
    listener = at.hub.listen(roots)
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
            rung = await listener.rung(KEEPALIVE_S)
            if at.hub.closing or not await _still_admitted(request):
                return
            if not rung:
                yield b": still here\n\n"
                continue
            if moved := listener.moved():  # empty where it rang again while the token was looked at
                # Not the store's heads: a commit can be read there before the hub has told of it.
                yield _message("moved", at.cursor(listener.heads), _told(sorted(moved), frozenset()))
    finally:
        at.hub.leave(listener)


async def _still_admitted(request: Request) -> bool:
    try:
        await services(request).access.caller(request)
    except Unauthenticated:
        return False
    return True


def _told(moved: list[str], wanted: frozenset[str]) -> dict[str, object]:
    if len(moved) >= ROOTS_TOLD_MAX:
        return {"roots": sorted(wanted), "all": not wanted}
    return {"roots": [root for root in moved if not wanted or root in wanted]}


def _message(event: str, cursor: str, data: dict[str, object]) -> bytes:
    body = msgspec.json.encode({**data, "cursor": cursor})
    return b"event: %s\nid: %s\ndata: %s\n\n" % (event.encode(), cursor.encode(), body)
