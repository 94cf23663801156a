"""The web pages: the same views as the JSON, rendered for people. Forms carry a CSRF token."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any
from urllib.parse import urlencode

from markupsafe import escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from ledger.errors import Forbidden, NotFound, Unauthenticated
from ledger.events.content import parse_payload
from ledger.events.model import END_SEQ, OPENING_SEQ, Recorded, goal_root, task_stream
from ledger.events.times import format_instant
from ledger.http import rendering, views
from ledger.http.agent_text import plain
from ledger.http.auth import COOKIE, READER, Caller, require
from ledger.http.callers import form_of, owner_with_form
from ledger.http.page_words import in_path
from ledger.http.read import filters, optional_number, story
from ledger.http.services import Services, services
from ledger.store.base import Store
from projections import catalog as catalogs
from projections.actions import HALT, RESUME
from projections.goal import ROWS_SHOWN

SESSION_EVENTS_SHOWN = 200
EVENTS_BEFORE = 20  # shown before the one that a link leads to
STOPS_SHOWN = 20  # of a goal's history

Json = dict[str, Any]

Me = dict[str, str]

# Stand in a page for what differs between visitors of one role. No agent can have written them.
_WHO, _CSRF = f"who-{secrets.token_hex(16)}", f"csrf-{secrets.token_hex(16)}"


def page(show: Callable[[Request, Services, Me], Awaitable[str]]) -> Callable[[Request], Awaitable[Response]]:
    """A handler for readers; those who are not logged in are sent to the login and come back."""

    async def handler(request: Request) -> Response:
        at = services(request)
        try:
            caller = await at.access.caller(request)
        except Unauthenticated:
            if "authorization" in request.headers:
                raise
            return _to_login(request)
        require(caller, READER)
        return HTMLResponse(await show(request, at, _me(caller)))

    return handler


def shared_page(
    make: Callable[[Request, Services, Me], Coroutine[Any, Any, str]],
    root_of: Callable[[Request, Services], Awaitable[str | None]],
) -> Callable[[Request], Awaitable[Response]]:
    """A page that is rendered once for all visitors of a role who look at it: see `page_cache`. `root_of` names the
    root it tells of."""

    async def show(request: Request, at: Services, me: Me) -> str:
        key = (request.url.path, request.url.query, me["role"])
        nobody = {"role": me["role"], "who": _WHO, "csrf": _CSRF}
        html = await at.pages.get(key, await root_of(request, at), lambda: make(request, at, nobody))
        return html.replace(_WHO, escape(plain(me["who"]))).replace(_CSRF, me["csrf"])

    return page(show)


async def _home(request: Request, at: Services, me: Me) -> str:
    return await asyncio.to_thread(rendering.home_page, await views.fleet(at), me, now=at.clock())


async def any_root(request: Request, at: Services) -> None:
    """For a page that tells of many roots: whatever moves may change it."""


home = shared_page(_home, any_root)


@page
async def goals(request: Request, at: Services, me: Me) -> str:
    wanted = filters(request)
    listing = await views.listing(at, catalogs.goals, **wanted)
    return rendering.goals_page(listing, me, now=at.clock(), status=wanted["status"])


@page
async def tasks(request: Request, at: Services, me: Me) -> str:
    wanted = filters(request)
    listing = await views.listing(at, catalogs.tasks, **wanted)
    return rendering.tasks_page(listing, me, now=at.clock(), status=wanted["status"])


async def _goal(request: Request, at: Services, me: Me) -> str:
    goal_id, then = request.path_params["id"], request.query_params.get("at")
    found = await views.goal(at, goal_id, **await story(request, at, rows_max=ROWS_SHOWN))
    past = await views.past_of_goal(at, goal_id, STOPS_SHOWN)
    return await asyncio.to_thread(rendering.goal_page, found, me, now=at.clock(), past=past, then=then)


async def _root_of_goal(request: Request, at: Services) -> str:
    return goal_root(request.path_params["id"])


goal = shared_page(_goal, _root_of_goal)


async def _task(request: Request, at: Services, me: Me) -> str:
    found = await views.task(at, request.path_params["id"], **await story(request, at, rows_max=ROWS_SHOWN))
    return await asyncio.to_thread(rendering.task_page, found, me, now=at.clock())


async def _root_of_task(request: Request, at: Services) -> str | None:
    info = await at.store.stream(task_stream(request.path_params["id"]))
    return None if info is None else info.root


task = shared_page(_task, _root_of_task)


@page
async def session(request: Request, at: Services, me: Me) -> str:
    """`from` is the first seq shown; `around` one that is shown with what stands before it; `whole` the only one,
    shown with all its text."""
    session_id = request.path_params["id"]
    found = await views.session(at, session_id)
    whole = optional_number(request, "whole", OPENING_SEQ)
    if whole is not None:
        events = await at.store.read_stream(session_id, from_seq=whole, limit=1)
        if not events or events[0].seq != whole:
            raise NotFound(f"session {session_id!r} has no event {whole}")
        return await asyncio.to_thread(rendering.event_page, found, _event(events[0]), me, now=at.clock())
    shown, paging = await _stretch(at.store, session_id, await _first_seq(request, at.store, session_id))
    # in a thread: 200 outputs full of colours take half a second, in which others must be served
    return await asyncio.to_thread(rendering.session_page, found, shown, paging, me, now=at.clock())


async def _first_seq(request: Request, store: Store, session_id: str) -> int:
    around = optional_number(request, "around", OPENING_SEQ)
    if around is None:
        start = optional_number(request, "from", OPENING_SEQ)
        return OPENING_SEQ if start is None else start
    before = await store.read_stream(session_id, from_seq=around, limit=EVENTS_BEFORE + 1, backward=True)
    return before[-1].seq if before else around


async def _stretch(store: Store, session_id: str, first_seq: int) -> tuple[list[Json], Json]:
    """The events shown from a seq on, and where the pages before and after them begin."""
    events = await store.read_stream(session_id, from_seq=first_seq, limit=SESSION_EVENTS_SHOWN)
    paging = {
        "previous": await _page_before(store, session_id, events[0].seq) if events else None,
        "next": await _page_after(store, session_id, events[-1].seq) if events else None,
    }
    return [_event(event) for event in events], paging


def _event(event: Recorded) -> Json:
    return {
        "position": event.position,
        "session_id": event.session_id,
        "seq": event.seq,
        "kind": event.kind,
        "actor": event.actor,
        "at": None if event.at is None else format_instant(event.at),
        "recorded_at": format_instant(event.recorded_at),
        "payload": parse_payload(event.payload),
    }


async def _page_before(store: Store, session_id: str, first_seq: int) -> int | None:
    if first_seq <= OPENING_SEQ:
        return None
    events = await store.read_stream(session_id, from_seq=first_seq - 1, limit=SESSION_EVENTS_SHOWN, backward=True)
    return events[-1].seq if events else None


async def _page_after(store: Store, session_id: str, last_seq: int) -> int | None:
    """Asked of the store: heavy events make a page shorter than it may be, so its length does not say."""
    if last_seq == END_SEQ:
        return None
    events = await store.read_stream(session_id, from_seq=last_seq + 1, limit=1)
    return events[0].seq if events else None


def _to_login(request: Request) -> Response:
    wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    query = {"next": wanted, **({"again": "1"} if COOKIE in request.cookies else {})}
    return RedirectResponse(f"/login?{urlencode(query)}", 303)


async def login_form(request: Request) -> Response:
    next_path = _local_path(request.query_params.get("next", "/"))
    problem = "Your login has run out. Log in again, and you come back to where you were."
    said = {"problem": problem} if "again" in request.query_params else {}
    return HTMLResponse(rendering.login_page(now=services(request).clock(), next_path=next_path, **said))


async def login(request: Request) -> Response:
    at = services(request)
    form = await form_of(request)
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
    at.access.check_csrf(caller, str((await form_of(request)).get("csrf", "")))
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
    at, caller, form = await owner_with_form(request)
    id, action = request.path_params["id"], request.path_params["action"]
    await decision(at)(id, action, str(form.get("reason", "")), caller.name)
    if action in (HALT, RESUME):  # the loop's page shows what was asked until its runner has taken it
        what = "loops"
    return RedirectResponse(f"/{what}/{in_path(id)}", 303)


def _me(caller: Caller) -> Me:
    who = caller.name[:40] if caller.name == caller.role else f"{caller.name[:40]}, {caller.role}"
    return {"who": who, "role": caller.role, "csrf": caller.csrf or ""}


def _local_path(path: str) -> str:
    """Where to go after the login: a path of this server, never another's."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() else "/"
