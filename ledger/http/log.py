"""The log itself, as it was recorded: GET /api/events, /api/sessions/{id}/events."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ledger.commands.reading import unknown
from ledger.events.model import END_SEQ, Recorded
from ledger.events.times import format_instant
from ledger.http.auth import READER, require
from ledger.http.read import number, optional_number
from ledger.http.services import as_json, services
from ledger.store import cursors
from ledger.store.base import beyond

EVENTS_DEFAULT, EVENTS_MAX = 500, 5_000
NDJSON = "application/x-ndjson"


class EventOut(msgspec.Struct, frozen=True):
    """An event of the log. `payload`, and `extra` (fields that the ledger does not know), stand byte for byte."""

    position: int
    session_id: str
    seq: int
    kind: str
    actor: str
    at: str | None
    recorded_at: str
    task_id: str | None
    payload: msgspec.Raw
    extra: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class Feed(msgspec.Struct, frozen=True):
    """`cursor` says how far this has read; give it as `after` to read on."""

    events: list[EventOut]
    cursor: str


class SessionEvents(msgspec.Struct, frozen=True):
    """In seq order. `next` is the `from` that reads on, null at the end; `previous` the `before` that reads back."""

    events: list[EventOut]
    next: int | None
    previous: int | None
    cursor: str


async def feed(request: Request) -> Response:
    at = services(request)
    require(await at.access.caller(request), READER)
    limit = number(request, "limit", EVENTS_DEFAULT, EVENTS_MAX)
    after = request.query_params.get("after")
    heads = cursors.start(at.store.buckets) if after is None else await at.heads(after)
    events = await at.store.read_feed(heads, limit=limit)
    page = Feed([event_out(event) for event in events], at.cursor(beyond(heads, events)))
    return _answer(request, page)


async def session_events(request: Request) -> Response:
    """`from` (a seq) and `limit`; `before` (a seq) reads the ones below it."""
    at = services(request)
    require(await at.access.caller(request), READER)
    session_id = request.path_params["id"]
    if await at.store.stream(session_id) is None:
        raise unknown("session", session_id)
    limit = number(request, "limit", EVENTS_DEFAULT, EVENTS_MAX)
    heads = await at.store.heads()
    events, following, previous = await session_page(
        request, session_id, limit, optional_number(request, "from", -1), optional_number(request, "before", -1)
    )
    page = SessionEvents([event_out(event) for event in events], following, previous, at.cursor(heads))
    return _answer(request, page)


async def session_page(
    request: Request, session_id: str, limit: int, start: int | None, before: int | None
) -> tuple[list[Recorded], int | None, int | None]:
    """One page of a session's events in seq order, the `from` of the next page and the `before` of the previous."""
    store = services(request).store
    if before is not None:
        events = await store.read_stream(session_id, from_seq=before - 1, limit=limit, backward=True)
        events.reverse()
    else:
        events = await store.read_stream(session_id, from_seq=-1 if start is None else start, limit=limit)
    if not events:
        return [], None, None
    first, last = events[0].seq, events[-1].seq
    more = last < END_SEQ and await store.read_stream(session_id, from_seq=last + 1, limit=1)
    less = first > -1 and await store.read_stream(session_id, from_seq=first - 1, limit=1, backward=True)
    return events, last + 1 if more else None, first if less else None


def event_out(event: Recorded) -> EventOut:
    return EventOut(
        event.position,
        event.session_id,
        event.seq,
        event.kind,
        event.actor,
        None if event.at is None else format_instant(event.at),
        format_instant(event.recorded_at),
        event.task_id,
        msgspec.Raw(event.payload),
        msgspec.UNSET if event.extra is None else msgspec.Raw(event.extra),
    )


def _answer(request: Request, page: Feed | SessionEvents) -> Response:
    if NDJSON not in request.headers.get("accept", ""):
        return as_json(page)
    body = b"".join(_line(event) for event in page.events)
    return Response(body, media_type=NDJSON, headers={"Ledgerd-Cursor": page.cursor})


def _line(event: EventOut) -> bytes:
    """In JSON a line break can only stand between tokens, where a space says the same."""
    return msgspec.json.encode(event).replace(b"\n", b" ").replace(b"\r", b" ") + b"\n"
