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
from ledger.http import loops, views
from ledger.http.auth import SADDLE, require
from ledger.http.callers import owner_with_body
from ledger.http.read import optional_number
from ledger.http.services import Services, as_json, services
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
    """The same decisions as those of its task, and those that only the loop itself shows to be open."""
    at, caller, body = await owner_with_body(request)
    asked = decode_body(body, DecisionIn, empty_ok=True)
    task_id = request.path_params["id"]
    await ask(at, task_id, request.path_params["action"], asked.reason, caller.name)
    return as_json(await views.task(at, task_id))


async def ask(at: Services, task_id: str, action: str, reason: str, by: str) -> None:
    """Asks the runner of the loop of a task to halt or to resume. Raises NotFound, NotOffered."""
    task = (await at.reader.catalog()).work.tasks.get(task_id)
    if task is None or not task.loops:
        raise unknown("loop", task_id)
    if action not in (HALT, RESUME):
        raise NotOffered(f"loop {task_id}: {action} is no decision about a loop, {HALT} and {RESUME} are")
    also = loops.offered(await at.loops.of(task))
    await at.decisions.about_task(task_id, action, reason, by, also=also)
