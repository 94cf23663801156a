"""What owners ask of loops, and how the saddles that run them hear of it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ledger.commands.reading import unknown
from ledger.commands.requests import requests_of
from ledger.errors import NotOffered
from ledger.events.decode import decode_body
from ledger.events.ids import checked_id
from ledger.events.wire import DecisionIn, RequestsOut
from ledger.http import views
from ledger.http.auth import SADDLE, require
from ledger.http.read import optional_number
from ledger.http.services import as_json, services
from projections.actions import HALT, RESUME


async def loop_requests(request: Request) -> Response:
    """`session_id`: the loop's; `after`: the seq of the request that was heard last."""
    at = services(request)
    caller = await at.access.caller(request)
    require(caller, SADDLE)
    session_id = checked_id(request.query_params.get("session_id", ""), "session_id")
    after = optional_number(request, "after", -1)
    found = await requests_of(at.store, session_id, caller.saddle, after=-1 if after is None else after)
    return as_json(RequestsOut(found))


async def decide_loop(request: Request) -> Response:
    """The same decisions as those of its task, for those who know it as a loop."""
    at = services(request)
    caller = await at.access.writer(request)
    async with at.admission.body(request) as body:
        asked = decode_body(body, DecisionIn, empty_ok=True)
    task_id, action = request.path_params["id"], request.path_params["action"]
    task = (await at.reader.catalog()).work.tasks.get(task_id)
    if task is None or not task.loops:
        raise unknown("loop", task_id)
    if action not in (HALT, RESUME):
        raise NotOffered(f"loop {task_id}: {action} is no decision about a loop, {HALT} and {RESUME} are")
    await at.decisions.about_task(task_id, action, asked.reason, caller.name)
    return as_json(await views.task(at, task_id))
