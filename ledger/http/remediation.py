"""Remediation, for its owner: /api/resource-remediation. Another owner's run looks unknown."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ledger.commands.remediation_reading import Standing
from ledger.errors import InvalidField
from ledger.events.decode import decode_body
from ledger.events.wire import ApproveIn
from ledger.http.auth import OWNER, require
from ledger.http.callers import owner_with_body
from ledger.http.services import as_json, services
from projections.remediation.plan import Configuration
from projections.remediation.state import Run
from projections.remediation.views import detail, not_started

Json = dict[str, Any]


async def current_run(request: Request) -> Response:
    """The run that is active, else the caller's newest, and what is configured; with `?brief=true` no more than
    where that run stands, for those who ask often."""
    at = services(request)
    caller = await at.access.caller(request)
    require(caller, OWNER)
    standing = await at.runs.current(caller.name)
    if request.query_params.get("brief") == "true":
        return as_json(brief(standing))
    configuration = (await at.runs.register()).configuration
    told = not_started() if standing is None else run_json(standing)
    return as_json({**told, "configuration": None if configuration is None else msgspec.to_builtins(configuration)})


async def one_run(request: Request) -> Response:
    at = services(request)
    caller = await at.access.caller(request)
    require(caller, OWNER)
    return as_json(run_json(await at.runs.of(request.path_params["id"], caller.name)))


async def start_run(request: Request) -> Response:
    at, caller, body = await owner_with_body(request)
    wanted = decode_body(body, dict[str, Any])
    run_id = await at.remediation.start(wanted, caller.name, caller.saddle)
    return as_json(run_json(await at.runs.standing(run_id)), 201)


async def resume_run(request: Request) -> Response:
    at, caller, body = await owner_with_body(request)
    wanted = decode_body(body, dict[str, Any], empty_ok=True)
    if unknown := sorted(wanted.keys() - {"steps"}):
        raise InvalidField(unknown[0], "is no field of this request", hint='Send {"steps": […]}, or nothing.')
    revised = wanted if wanted.get("steps") is not None else None
    run_id = await at.remediation.resume(revised, caller.name, caller.saddle)
    return as_json(run_json(await at.runs.standing(run_id)))


async def approve_run(request: Request) -> Response:
    at, caller, body = await owner_with_body(request)
    asked = decode_body(body, ApproveIn, empty_ok=True)
    run_id = await at.remediation.approve(asked.feedback, caller.name, caller.saddle)
    return as_json(run_json(await at.runs.standing(run_id)))


async def configure_remediation(request: Request) -> Response:
    """Names, aliases and rules: what a plan is checked against. Where projects lie only their runner knows."""
    at, caller, body = await owner_with_body(request)
    configuration = decode_body(body, Configuration)
    new = await at.remediation.configure(configuration, caller.name)
    return as_json({"configuration": msgspec.to_builtins(configuration), "new": new})


def brief(standing: Standing | None) -> Json:
    """The first lines of `run_json`."""
    run = Run() if standing is None else standing.run
    told = {"run_id": run.id or None, "status": run.status, "stage": run.stage}
    return {**told, "active": standing is not None and standing.active}


def run_json(standing: Standing) -> Json:
    """`task_status` is that of its task; `active` says whether it stands in the way of another start, `cancelled`
    that its task was ended from outside."""
    return {
        **detail(standing.run),
        "task_status": standing.task_status,
        "active": standing.active,
        "cancelled": standing.cancelled,
        **({"actions": []} if standing.cancelled else {}),
    }
