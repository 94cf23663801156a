"""The pages of loops: /loops, /loops/NAME, and what an owner asks of one there."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ledger.errors import NotFound
from ledger.events.model import task_stream
from ledger.http import loops as told
from ledger.http import rendering, requests
from ledger.http.callers import owner_with_form
from ledger.http.page_words import in_path
from ledger.http.pages import Me, any_root, shared_page
from ledger.http.read import number
from ledger.http.services import Services
from projections.loop_views import ROUNDS_SHOWN


async def _loops(request: Request, at: Services, me: Me) -> str:
    listing = await told.listing(at, after=request.query_params.get("after"))
    return await asyncio.to_thread(rendering.loops_page, listing, me, now=at.clock())


async def _loop(request: Request, at: Services, me: Me) -> str:
    """By its name, or by the id of its task; where several have the name, the choice."""
    name = request.path_params["id"]
    heads = await at.store.heads()
    named = await at.loops.called(name)
    if len(named) > 1:
        items = [told.item(await at.loops.of(task)) for task in named[: told.LOOPS_SHOWN_MAX]]
        listing = {"items": items, "next": None, "cursor": at.cursor(heads)}
        return await asyncio.to_thread(rendering.loops_page, listing, me, now=at.clock(), name=name)
    rounds = number(request, "rounds", ROUNDS_SHOWN, told.ROUNDS_SHOWN_MAX)
    found = await told.detail(at, named[0], rounds=rounds)
    return await asyncio.to_thread(rendering.loop_page, found, me, now=at.clock())


async def _root_of_loop(request: Request, at: Services) -> str | None:
    """None where several have the name, or none has: a loop of that name may come."""
    try:
        named = await at.loops.called(request.path_params["id"])
    except NotFound:
        return None
    info = await at.store.stream(task_stream(named[0].id)) if len(named) == 1 else None
    return None if info is None else info.root


loops = shared_page(_loops, any_root)
loop = shared_page(_loop, _root_of_loop)


async def ask_loop(request: Request) -> Response:
    at, caller, form = await owner_with_form(request)
    task_id = request.path_params["id"]
    await requests.ask(at, task_id, request.path_params["action"], str(form.get("reason", "")), caller.name)
    return RedirectResponse(f"/loops/{in_path(task_id)}", 303)
