"""The pages of incidents: /incidents, /incidents/ID, and what an owner decides there."""

from __future__ import annotations

import asyncio

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ledger.http import incidents as told
from ledger.http import rendering
from ledger.http.callers import owner_with_form
from ledger.http.incidents_plots import trend_plots
from ledger.http.page_words import in_path
from ledger.http.pages import Me, any_root, shared_page
from ledger.http.services import Services
from projections.incidents_views import UNRESOLVED

SHOWN = 50
SESSIONS_SHOWN = 5  # of each incident in the list
WEEKS_DRAWN = 13


async def _incidents(request: Request, at: Services, me: Me) -> str:
    """Those that are not resolved, unless `status` asks for others, or for all."""
    asked = told.wanted(request)
    status = asked.status or UNRESOLVED
    asked = msgspec.structs.replace(asked, status=status, limit=SHOWN)
    listing = await told.listing(at, asked, sessions_max=SESSIONS_SHOWN, weeks=WEEKS_DRAWN)

    def drawn() -> str:
        plots = trend_plots(listing["trend"])
        return rendering.incidents_page(listing, msgspec.structs.asdict(asked), me, now=at.clock(), plots=plots)

    return await asyncio.to_thread(drawn)


async def _incident(request: Request, at: Services, me: Me) -> str:
    found = await told.detail(at, request.path_params["id"])
    return await asyncio.to_thread(rendering.incident_page, found, me, now=at.clock())


incidents = shared_page(_incidents, any_root)
incident = shared_page(_incident, any_root)


async def decide_incident(request: Request) -> Response:
    at, caller, form = await owner_with_form(request)
    id = request.path_params["id"]
    await at.incident_commands.decide(id, request.path_params["action"], str(form.get("reason", "")), caller.name)
    name = in_path(id)
    return RedirectResponse(f"/incidents#i-{name}" if form.get("back") == "list" else f"/incidents/{name}", 303)
