"""The pages of remediation: /runs, /runs/ID, and what its owner decides there. Another owner's run looks unknown."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ledger.errors import InvalidField, NotFound, Unauthenticated
from ledger.events.model import task_root
from ledger.http import rendering
from ledger.http.auth import OWNER, Caller
from ledger.http.callers import owner_with_form
from ledger.http.page_words import in_path
from ledger.http.pages import Me, page, shared_page
from ledger.http.read import optional_number
from ledger.http.remediation_rows import status_of_run
from ledger.http.services import Services, services
from ledger.http.views import not_in_list
from projections.catalog import task_item
from projections.remediation import story
from projections.remediation.state import Run
from projections.session import session_item

RUNS_SHOWN = 50
PLAN_FORM_BYTES_MAX = 2 * 2**20
PLAN_CHARS_SHOWN = 100_000  # of a plan that a form is filled with

Json = dict[str, Any]


async def runs(request: Request) -> Response:
    """An owner sees his own, a reader all."""
    return await (_runs_of_owner if await _is_owner(request) else _runs_of_all)(request)


async def run(request: Request) -> Response:
    caller = await _caller(request)
    if caller is not None and caller.role == OWNER:
        await services(request).runs.entry(request.path_params["id"], caller.name)
    return await _shared_run(request)


async def resume_run(request: Request) -> Response:
    at, caller, form = await owner_with_form(request, PLAN_FORM_BYTES_MAX)
    wanted = _plan_of(str(form.get("plan", "")))
    run_id = await at.remediation.resume(wanted, caller.name, caller.saddle, request.path_params["id"])
    return _back_to(run_id)


async def approve_run(request: Request) -> Response:
    at, caller, form = await owner_with_form(request, PLAN_FORM_BYTES_MAX)
    feedback = str(form.get("feedback", ""))
    run_id = await at.remediation.approve(feedback, caller.name, caller.saddle, request.path_params["id"])
    return _back_to(run_id)


async def _list(request: Request, at: Services, me: Me, owner: str | None) -> str:
    """The newest first; those that are active are few, so the others are told by their tasks alone."""
    heads = await at.store.heads()
    entries = [one for one in reversed((await at.runs.register()).runs) if owner is None or one.owner == owner]
    after = request.query_params.get("after")
    if after is not None:
        places = [place for place, one in enumerate(entries) if one.run_id == after]
        if not places:
            raise not_in_list(after)
        entries = entries[places[0] + 1 :]
    shown, work = entries[:RUNS_SHOWN], (await at.reader.catalog()).work
    items = []
    for entry in shown:
        task = work.tasks[entry.run_id]
        told = (
            story.page((await at.runs.standing(entry.run_id)).run, limit=1) if task.attempts[0].end is None else None
        )
        items.append({**task_item(task), "run_id": entry.run_id, "owner": entry.owner, **_said(told, task.status)})
    listing = {
        "items": items,
        "next": shown[-1].run_id if len(entries) > len(shown) else None,
        "cursor": at.cursor(heads),
    }
    return await asyncio.to_thread(rendering.runs_page, listing, me, now=at.clock())


def _said(run: Json | None, task_status: str) -> Json:
    if run is None:
        return {
            "dot": task_status,
            "said": f"{'Completed' if task_status == 'done' else task_status.capitalize()}.",
            "text": "",
        }
    dot, said = status_of_run({**run, "cancelled": False})
    return {"dot": dot, "said": said, "text": (run["waits_for"] or {}).get("text", "")}


@page
async def _runs_of_all(request: Request, at: Services, me: Me) -> str:
    return await _list(request, at, me, None)


@page
async def _runs_of_owner(request: Request, at: Services, me: Me) -> str:
    return await _list(request, at, me, (await at.access.caller(request)).name)


async def _run(request: Request, at: Services, me: Me) -> str:
    run_id = request.path_params["id"]
    heads = await at.store.heads()
    standing = await at.runs.of(run_id, None)
    found = standing.run
    exchange = request.query_params.get("exchange")
    if exchange is not None:
        row = story.exchange(found, exchange)
        if row is None:
            raise NotFound(f"run {run_id!r} has no exchange {exchange!r}")
        return await asyncio.to_thread(rendering.exchange_page, {"run_id": run_id}, row, me, now=at.clock())
    told = story.page(found, before=optional_number(request, "before"))
    if standing.over:
        told["actions"] = []
    task = (await at.reader.catalog()).work.tasks[run_id]
    return await asyncio.to_thread(
        rendering.run_page,
        {**told, "cancelled": standing.cancelled, "cursor": at.cursor(heads)},
        me,
        now=at.clock(),
        title=task.title,
        sessions=[session_item(one) for one in task.sessions_of()],
        plan_text=_plan_text(found) if told["actions"] else "",
    )


async def _root_of_run(request: Request, at: Services) -> str:
    return task_root(request.path_params["id"])


_shared_run = shared_page(_run, _root_of_run)


async def _caller(request: Request) -> Caller | None:
    """None for somebody who is not logged in: the page sends them to the login."""
    try:
        return await services(request).access.caller(request)
    except Unauthenticated:
        return None


async def _is_owner(request: Request) -> bool:
    caller = await _caller(request)
    return caller is not None and caller.role == OWNER


def _plan_of(text: str) -> Json | None:
    """What was typed: a list of steps, or `{"steps": […]}`; None where nothing was. Raises InvalidField."""
    if not text.strip():
        return None
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        detail = "is nested too deep" if isinstance(error, RecursionError) else f"is no JSON: {error}"
        hint = "Go back: what you wrote is still in the form. A plan is a list of steps."
        raise InvalidField("plan", detail, hint=hint) from error
    return value if isinstance(value, dict) else {"steps": value}


def _plan_text(run: Run) -> str:
    text = msgspec.json.format(msgspec.json.encode(story.plan(run)), indent=2).decode()
    return text if len(text) <= PLAN_CHARS_SHOWN else ""


def _back_to(run_id: str) -> Response:
    return RedirectResponse(f"/runs/{in_path(run_id)}", 303)
