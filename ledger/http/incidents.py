"""Incidents, for those who read and for owners who decide: /api/incidents, with what is behind each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ledger.commands.reading import unknown
from ledger.errors import InvalidField
from ledger.events.decode import decode_body
from ledger.events.kinds import is_own_stream
from ledger.events.wire import DecisionIn
from ledger.http.callers import owner_with_body, reader
from ledger.http.incidents_rows import path_of_session
from ledger.http.read import number
from ledger.http.services import Services, as_json
from ledger.http.views import not_in_list
from projections import incidents_views as views
from projections.incidents import SEVERITIES
from projections.incidents_board import Board
from projections.incidents_decided import STATUSES, Decided
from projections.incidents_views import ALL, PAGE, UNRESOLVED, Json

SESSIONS_LISTED = 20  # of each incident in a list; its own page has all
LISTED_MAX = 200
WEEKS = 26


class Wanted(msgspec.Struct, frozen=True):
    """What a list is to hold: only what stands in a status, or UNRESOLVED; only one severity; only one register."""

    status: str | None = None
    severity: str | None = None
    register: str | None = None
    after: str | None = None
    limit: int = PAGE


async def incidents(request: Request) -> Response:
    at = await reader(request)
    return as_json(await listing(at, wanted(request)))


async def incident(request: Request) -> Response:
    at = await reader(request)
    return as_json(await detail(at, request.path_params["id"]))


async def decide_incident(request: Request) -> Response:
    at, caller, body = await owner_with_body(request)
    asked = decode_body(body, DecisionIn, empty_ok=True)
    id = request.path_params["id"]
    await at.incident_commands.decide(id, request.path_params["action"], asked.reason, caller.name)
    return as_json(await detail(at, id))


def wanted(request: Request) -> Wanted:
    """Raises InvalidField."""
    query = request.query_params
    for name, known in (("status", (*STATUSES, UNRESOLVED, ALL)), ("severity", SEVERITIES)):
        given = query.get(name)
        if given is not None and given not in known:
            raise InvalidField(name, f"{given!r} is none of {', '.join(known)}")
    return Wanted(
        query.get("status"),
        query.get("severity"),
        query.get("register"),
        query.get("after"),
        number(request, "limit", PAGE, LISTED_MAX),
    )


async def listing(at: Services, asked: Wanted, *, sessions_max: int = SESSIONS_LISTED, weeks: int = WEEKS) -> Json:
    """A page of incidents, the worst first, then the newest; with the state of the registers. Raises InvalidField."""
    heads = await at.store.heads()
    board, decided = await at.incidents.standing()
    mondays = views.weeks_until(at.clock(), weeks)
    # in a thread: a long register takes a while to sort, in which others must be served
    found = await asyncio.to_thread(_told, board, decided, asked, sessions_max, mondays)
    await _link(at, found["items"], found["exclusions"])
    return {**found, "cursor": at.cursor(heads)}


def _told(board: Board, decided: Decided, asked: Wanted, sessions_max: int, mondays: Sequence[str]) -> Json:
    register = asked.register
    told = [one for one in views.incidents(board, decided) if register in (None, one.found.register)]
    try:
        shown, following = views.listed(
            told, status=asked.status, severity=asked.severity, after=asked.after, limit=asked.limit
        )
    except KeyError as error:
        raise not_in_list(asked.after) from error
    return {
        "items": [views.item(one, sessions_max) for one in shown],
        "next": following,
        "counts": views.counts(told),
        "registers": views.registers(board, register=register),
        "exclusions": views.exclusions(board, register=register),
        "trend": views.trend(board, told, mondays, register=register),
    }


async def detail(at: Services, id: str) -> Json:
    """Raises NotFound."""
    heads = await at.store.heads()
    one = views.incident(*await at.incidents.standing(), id)
    if one is None:
        raise unknown("incident", id)
    told = views.item(one)
    await _link(at, [told], [])
    return {**told, "cursor": at.cursor(heads)}


async def latest(at: Services, limit: int) -> list[Json]:
    """The incidents of which something was said last, that one first."""
    told = await asyncio.to_thread(views.incidents, *await at.incidents.standing())
    told.sort(key=lambda one: (one.moved_at, one.found.id), reverse=True)
    return [views.item(one, SESSIONS_LISTED) for one in told[:limit]]


async def _link(at: Services, items: list[Json], exclusions: list[Json]) -> None:
    """Gives each session and each turn its `href`: where it stands on this ledger; null where it does not."""
    sessions = [session for item in items for session in item["sessions"]]
    candidates = [candidate for one in exclusions for candidate in one["candidates"]]
    names = {one["session_id"] for one in (*sessions, *candidates)} - {None}
    here = await at.store.last_recorded_at([name for name in sorted(names) if not is_own_stream(name)])
    for session in sessions:
        session_id = session["session_id"] if session["session_id"] in here else None
        session["href"] = path_of_session(session_id)
        for turn in session["turns"]:
            turn["href"] = path_of_session(session_id, turn["seq"])
    for one in candidates:
        one["href"] = path_of_session(one["session_id"] if one["session_id"] in here else None, one["seq"])
