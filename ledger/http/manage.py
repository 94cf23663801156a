"""What owners do: creating, deciding, tokens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ledger.errors import InvalidField
from ledger.events.decode import decode_body
from ledger.events.times import format_instant, parse_instant
from ledger.events.wire import DecisionIn, GoalIn, NewTaskIn, ProjectIn, TokenIn
from ledger.http import views
from ledger.http.auth import OWNER, require
from ledger.http.callers import owner_with_body
from ledger.http.services import Services, as_json, services
from ledger.store.base import Token
from projections.catalog import project_item


async def create_project(request: Request) -> Response:
    at, caller, body = await owner_with_body(request)
    project_id, new = await at.decisions.create_project(decode_body(body, ProjectIn), caller.name)
    project = (await at.reader.catalog()).projects[project_id]
    return as_json(project_item(project), 201 if new else 200)


async def create_goal(request: Request) -> Response:
    at, caller, body = await owner_with_body(request)
    goal_id, new = await at.decisions.create_goal(decode_body(body, GoalIn), caller.name)
    return as_json(await views.goal(at, goal_id), 201 if new else 200)


async def create_task(request: Request) -> Response:
    at, caller, body = await owner_with_body(request)
    task_id, new = await at.decisions.create_task(decode_body(body, NewTaskIn), caller.name)
    return as_json(await views.task(at, task_id), 201 if new else 200)


async def decide_goal(request: Request) -> Response:
    return await _decide(request, lambda at: at.decisions.about_goal, views.goal)


async def decide_task(request: Request) -> Response:
    return await _decide(request, lambda at: at.decisions.about_task, views.task)


async def _decide(
    request: Request,
    decision: Callable[[Services], Callable[[str, str, str, str], Awaitable[None]]],
    view: Callable[[Services, str], Awaitable[dict[str, Any]]],
) -> Response:
    at, caller, body = await owner_with_body(request)
    asked = decode_body(body, DecisionIn, empty_ok=True)
    id, action = request.path_params["id"], request.path_params["action"]
    await decision(at)(id, action, asked.reason, caller.name)
    return as_json(await view(at, id))


async def create_token(request: Request) -> Response:
    at, _, body = await owner_with_body(request)
    asked = decode_body(body, TokenIn)
    expires_at = None if asked.expires_at is None else parse_instant(asked.expires_at)
    if asked.expires_at is not None and expires_at is None:
        raise InvalidField("expires_at", f"{asked.expires_at!r} is no instant", hint="Send RFC 3339 with an offset.")
    kept, token = await at.access.mint(asked.role, asked.name, expires_at)
    return as_json({**_token_item(kept), "token": token}, 201)


async def list_tokens(request: Request) -> Response:
    at = services(request)
    require(await at.access.caller(request), OWNER)
    return as_json({"items": [_token_item(token) for token in await at.store.tokens()], "next": None})


async def revoke_token(request: Request) -> Response:
    at = services(request)
    await at.access.writer(request)
    await at.access.revoke(request.path_params["id"])
    return Response(status_code=204)


def _token_item(token: Token) -> dict[str, Any]:
    def instant(ns: int | None) -> str | None:
        return None if ns is None else format_instant(ns)

    return {
        "id": token.id,
        "role": token.role,
        "name": token.name,
        "created_at": instant(token.created_at),
        "expires_at": instant(token.expires_at),
        "revoked_at": instant(token.revoked_at),
    }
