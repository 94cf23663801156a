"""What readers ask for: GET /api/…  The root's new events → fold → view → JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ledger.errors import InvalidField
from ledger.events.model import END_SEQ
from ledger.http import views
from ledger.http.callers import reader
from ledger.http.services import Services, as_json
from ledger.store.base import Heads
from projections import catalog as catalogs
from projections.goal import ROWS_SHOWN

PAGE_MAX = 1000


async def goal(request: Request) -> Response:
    at = await reader(request)
    return as_json(await views.goal(at, request.path_params["id"], **await story(request, at)))


async def task(request: Request) -> Response:
    at = await reader(request)
    return as_json(await views.task(at, request.path_params["id"], **await story(request, at)))


async def session(request: Request) -> Response:
    at = await reader(request)
    return as_json(await views.session(at, request.path_params["id"]))


async def goals(request: Request) -> Response:
    return await _list(request, catalogs.goals)


async def tasks(request: Request) -> Response:
    return await _list(request, catalogs.tasks)


async def projects(request: Request) -> Response:
    at = await reader(request)
    wanted = filters(request)
    return as_json(await views.listing(at, catalogs.projects, after=wanted["after"], limit=wanted["limit"]))


async def fleet(request: Request) -> Response:
    at = await reader(request)
    return as_json(await views.fleet(at))


async def _list(request: Request, listing: Callable[..., dict[str, Any]]) -> Response:
    at = await reader(request)
    return as_json(await views.listing(at, listing, **filters(request)))


def filters(request: Request) -> dict[str, Any]:
    query = request.query_params
    return {
        "status": query.get("status"),
        "project_id": query.get("project_id"),
        "after": query.get("after"),
        "limit": number(request, "limit", catalogs.PAGE, PAGE_MAX),
    }


async def story(request: Request, at: Services, *, rows_max: int = PAGE_MAX) -> dict[str, Any]:
    """`at`: a cursor, for how it stood then; `before`, `limit`: which rows of the narrative."""
    then = request.query_params.get("at")
    heads: Heads | None = None if then is None else await at.heads(then)
    return {
        "at_heads": heads,
        "before": optional_number(request, "before"),
        "limit": number(request, "limit", ROWS_SHOWN, rows_max),
    }


def optional_number(request: Request, name: str, least: int = 0) -> int | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    if not text.removeprefix("-").isdecimal() or len(text) > 19 or not least <= int(text) <= END_SEQ:
        raise InvalidField(name, f"{text!r} is not an integer from {least} to 2^63-1")
    return int(text)


def number(request: Request, name: str, default: int, most: int) -> int:
    found = optional_number(request, name, 1)
    if found is not None and found > most:
        raise InvalidField(name, f"{found} is more than {most}")
    return default if found is None else found
