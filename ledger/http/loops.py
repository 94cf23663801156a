"""Loops, for those who read: /api/loops and /api/loops/ID. What is asked of one goes by `requests`."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ledger import prices
from ledger.commands.loop_reading import Standing
from ledger.errors import Conflict
from ledger.events.times import format_instant
from ledger.http.callers import reader
from ledger.http.loop_rows import Skip, interval_s, last_skip
from ledger.http.page_words import in_path
from ledger.http.read import number
from ledger.http.services import Services, as_json
from ledger.http.views import not_in_list
from projections.actions import links
from projections.loop_actions import loop_actions
from projections.loop_reasons import Reason
from projections.loop_state import ROLES, Loop
from projections.loop_views import ROUNDS_SHOWN, loop_item, loop_view
from projections.session import session_item
from projections.task import Task
from projections.usage import usage_item

LOOPS_SHOWN, LOOPS_SHOWN_MAX = 50, 200
ROUNDS_SHOWN_MAX = 1000

Json = dict[str, Any]


async def loops(request: Request) -> Response:
    at = await reader(request)
    limit = number(request, "limit", LOOPS_SHOWN, LOOPS_SHOWN_MAX)
    return as_json(await listing(at, after=request.query_params.get("after"), limit=limit))


async def loop(request: Request) -> Response:
    """By its task's id, or by its name where no other loop has that."""
    at = await reader(request)
    name = request.path_params["id"]
    [task, *others] = await at.loops.called(name)
    if others:
        ids = ", ".join([task.id, *(other.id for other in others)][:10])
        hint = f"Name one by its task: {ids}."
        raise Conflict(f"{len(others) + 1} loops are called {name!r}", code="ambiguous_loop", hint=hint)
    rounds = number(request, "rounds", ROUNDS_SHOWN, ROUNDS_SHOWN_MAX)
    return as_json(await detail(at, task, rounds=rounds))


async def listing(at: Services, *, after: str | None = None, limit: int = LOOPS_SHOWN) -> Json:
    """A page of loops, those with the newest tasks first. Raises InvalidField."""
    heads = await at.store.heads()
    try:
        found, following = await at.loops.newest(limit, after=after)
    except KeyError as error:
        raise not_in_list(after) from error
    return {"items": [item(standing) for standing in found], "next": following, "cursor": at.cursor(heads)}


async def detail(at: Services, task: Task, *, rounds: int = ROUNDS_SHOWN) -> Json:
    """All of a loop. `requests` are what was asked of it and not taken yet."""
    heads = await at.store.heads()
    standing = await at.loops.of(task)
    found, own = standing.loop, standing.session
    return {
        **loop_view(found, rounds=rounds),
        **item(standing),
        "project_id": task.project_id,
        "goal_id": task.goal_id,
        "saddle": own.saddle,
        "cwd": own.cwd,
        **_configured(found.config),
        "sessions": [session_item(one) for one in task.sessions_of()],
        "actions": links(f"/api/loops/{in_path(task.id)}", offered(standing)),
        "cursor": at.cursor(heads),
    }


def item(standing: Standing) -> Json:
    """A loop as a list shows it, with what this ledger knows besides."""
    task = standing.task
    return {
        **loop_item(standing.loop),
        "name": standing.loop.name or task.title or task.id,
        "task_status": task.status,
        "host": standing.session.host,
        "usage": prices.priced(usage_item(standing.loop.usage.whole)),
        "at_work": at_work(standing.loop),
        "last_skip": skip_item(last_skip(standing.loop)),
        "interval_s": interval_s(standing.loop),
        "requests": msgspec.to_builtins(standing.requests),
        "heard_at": format_instant(standing.heard_at),
    }


def at_work(found: Loop) -> Json | None:
    """The round that it is in, and the role that is next to end there; None between rounds, and where its runner was
    ended in the middle of one."""
    one, roles, skip = found.open_round, found.config.get("roles"), last_skip(found)
    if one is None or (skip is not None and skip.reason == Reason.INTERRUPTED):
        return None
    configured = [role for role in ROLES if isinstance(roles, dict) and roles.get(role)]
    return {"tick": one.tick, "role": next((role for role in configured if role not in one.roles), None)}


def offered(standing: Standing) -> tuple[str, ...]:
    """What its owner may ask of it now."""
    asked = standing.requests[-1].action if standing.requests else None
    return loop_actions(standing.task, standing.loop, asked)


def _configured(config: Json) -> Json:
    """What a page tells of a loop.json, whoever wrote it."""
    radius = config.get("blast_radius")
    scope = radius.get("file_scope") if isinstance(radius, dict) else None
    return {"file_scope": [one for one in scope if isinstance(one, str)] if isinstance(scope, list) else []}


def skip_item(skip: Skip | None) -> Json | None:
    return None if skip is None else {"reason": skip.reason, "at": format_instant(skip.at)}
