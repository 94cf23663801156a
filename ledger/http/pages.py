"""The web pages: the same views as the JSON, rendered for people. Forms carry a CSRF token."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from ledger.errors import Forbidden, TooLarge, Unauthenticated
from ledger.events.content import parse_payload
from ledger.events.times import format_instant
from ledger.http import rendering, views
from ledger.http.auth import COOKIE, OWNER, READER, Caller, require
from ledger.http.read import filters, number, optional_number
from ledger.http.services import Services, services
from ledger.store.base import Store
from projections import catalog as catalogs
from projections.goal import ROWS_SHOWN

FORM_BYTES_MAX = 64 * 2**10
SESSION_EVENTS_SHOWN = 200


def page(
    show: Callable[[Request, Services, dict[str, str]], Awaitable[str]],
) -> Callable[[Request], Awaitable[Response]]:
    """A handler for readers; those who are not logged in are sent to the login and come back."""

    async def handler(request: Request) -> Response:
        at = services(request)
        try:
            caller = await at.access.caller(request)
        except Unauthenticated:
            if "authorization" in request.headers:
                raise
            wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"/login?next={quote(wanted, safe='')}", 303)
        require(caller, READER)
        return HTMLResponse(await show(request, at, _me(caller)))

    return handler


@page
async def home(request: Request, at: Services, me: dict[str, str]) -> str:
    return rendering.home_page(await views.fleet(at), me, now=at.clock())


@page
async def goals(request: Request, at: Services, me: dict[str, str]) -> str:
    wanted = filters(request)
    listing = await views.listing(at, catalogs.goals, **wanted)
    return rendering.goals_page(listing, me, now=at.clock(), status=wanted["status"])


@page
async def tasks(request: Request, at: Services, me: dict[str, str]) -> str:
    wanted = filters(request)
    listing = await views.listing(at, catalogs.tasks, **wanted)
    return rendering.tasks_page(listing, me, now=at.clock(), status=wanted["status"])


@page
async def goal(request: Request, at: Services, me: dict[str, str]) -> str:
    found = await views.goal(at, request.path_params["id"], **_rows_wanted(request))
    return rendering.goal_page(found, me, now=at.clock())


@page
async def task(request: Request, at: Services, me: dict[str, str]) -> str:
    found = await views.task(at, request.path_params["id"], **_rows_wanted(request))
    return rendering.task_page(found, me, now=at.clock())


@page
async def session(request: Request, at: Services, me: dict[str, str]) -> str:
    session_id = request.path_params["id"]
    found = await views.session(at, session_id)
    start = optional_number(request, "from", -1)
    events = await at.store.read_stream(
        session_id, from_seq=-1 if start is None else start, limit=SESSION_EVENTS_SHOWN + 1
    )
    shown = events[:SESSION_EVENTS_SHOWN]
    paging = {
        "previous": await _page_before(at.store, session_id, shown[0].seq) if shown else None,
        "next": events[-1].seq if len(events) > len(shown) else None,
    }
    entries: list[Mapping[str, Any]] = [
        {
            "position": event.position,
            "session_id": event.session_id,
            "seq": event.seq,
            "kind": event.kind,
            "actor": event.actor,
            "at": None if event.at is None else format_instant(event.at),
            "recorded_at": format_instant(event.recorded_at),
            "payload": parse_payload(event.payload),
        }
        for event in shown
    ]
    # in a thread: 200 outputs full of colours take half a second, in which others must be served
    return await asyncio.to_thread(rendering.session_page, found, entries, paging, me, now=at.clock())


async def _page_before(store: Store, session_id: str, first_seq: int) -> int | None:
    if first_seq <= -1:
        return None
    events = await store.read_stream(session_id, from_seq=first_seq - 1, limit=SESSION_EVENTS_SHOWN, backward=True)
    return events[-1].seq if events else None


async def login_form(request: Request) -> Response:
    next_path = _local_path(request.query_params.get("next", "/"))
    return HTMLResponse(rendering.login_page(now=services(request).clock(), next_path=next_path))


async def login(request: Request) -> Response:
    at = services(request)
    form = await _form(request)
    next_path = _local_path(str(form.get("next", "/")))
    try:
        caller = await at.access.bearer(str(form.get("token", "")).strip())
        require(caller, READER)
    except (Unauthenticated, Forbidden) as error:
        html = rendering.login_page(now=at.clock(), problem=f"{error.detail.capitalize()}.", next_path=next_path)
        return HTMLResponse(html, 401)
    response = RedirectResponse(next_path, 303)
    at.access.login(caller, response, secure=request.url.scheme == "https")
    return response


async def logout(request: Request) -> Response:
    at = services(request)
    caller = await at.access.caller(request)
    at.access.check_csrf(caller, str((await _form(request)).get("csrf", "")))
    response = RedirectResponse("/login", 303)
    response.delete_cookie(COOKIE, path="/")
    return response


async def decide_goal(request: Request) -> Response:
    return await _decide(request, lambda at: at.decisions.about_goal, "goals")


async def decide_task(request: Request) -> Response:
    return await _decide(request, lambda at: at.decisions.about_task, "tasks")


async def _decide(
    request: Request, decision: Callable[[Services], Callable[[str, str, str, str], Awaitable[None]]], what: str
) -> Response:
    at = services(request)
    caller = await at.access.caller(request)
    form = await _form(request)
    at.access.check_csrf(caller, str(form.get("csrf", "")))
    require(caller, OWNER)
    id = request.path_params["id"]
    await decision(at)(id, request.path_params["action"], str(form.get("reason", "")), caller.name)
    return RedirectResponse(f"/{what}/{quote(id, safe='')}", 303)


async def _form(request: Request) -> FormData:
    length = request.headers.get("content-length", "")
    if not length.isdecimal() or int(length) > FORM_BYTES_MAX:
        raise TooLarge(f"a form has a stated length of at most {FORM_BYTES_MAX} bytes")
    return await request.form(max_files=0, max_fields=10)


def _rows_wanted(request: Request) -> dict[str, Any]:
    then = request.query_params.get("at")
    return {
        "at_heads": None if then is None else services(request).heads(then),
        "before": optional_number(request, "before"),
        "limit": number(request, "limit", ROWS_SHOWN, ROWS_SHOWN),
    }


def _me(caller: Caller) -> dict[str, str]:
    return {"name": caller.name, "role": caller.role, "csrf": caller.csrf or ""}


def _local_path(path: str) -> str:
    """Where to go after the login: a path of this server, never another's."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() else "/"
