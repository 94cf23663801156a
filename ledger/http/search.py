"""Searching: GET /search and GET /api/search. The address holds the words and all filters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ledger.errors import InvalidField, StorageError
from ledger.events import kinds
from ledger.events.times import NS_PER_S, format_instant, parse_instant
from ledger.http import rendering
from ledger.http.auth import READER, require
from ledger.http.pages import page
from ledger.http.read import number, optional_number
from ledger.http.services import Services, as_json, services
from ledger.store.base import Heads
from ledger.store.search_base import SORTS, Found, SearchIndex, Wanted
from projections.catalog import Catalog
from projections.ordered import Ordered

PAGE, PAGE_MAX = 50, 200
WORDS_CHARS_MAX = 500
FILTERS = ("kind", "project_id", "goal_id", "agent", "host", "status", "since", "until")

Json = dict[str, Any]

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_DAY_NS = 86_400 * NS_PER_S
_TASK_ROOT, _GOAL_ROOT = "task/", "goal/"


async def search(request: Request) -> Response:
    at = services(request)
    require(await at.access.caller(request), READER)
    return as_json(await _answer(request, at, number(request, "limit", PAGE, PAGE_MAX)))


@page
async def search_page(request: Request, at: Services, me: dict[str, str]) -> str:
    asked = {name: request.query_params.get(name, "") for name in ("q", *FILTERS)}
    answer = await _answer(request, at, PAGE) if any(value.strip() for value in asked.values()) else None
    return rendering.search_page(answer, asked, me, now=at.clock(), sorts=SORTS)


async def _answer(request: Request, at: Services, limit: int) -> Json:
    """`{items, next, behind}`: `behind` counts the events of the log that may not be among the items, as the index
    had still to take them in. So it is read first."""
    index = _index(at)
    catalog = await at.reader.catalog()
    behind = _behind(await at.store.heads(), await index.heads())
    found, following = await index.find(_wanted(request, catalog, limit))
    return {"items": [_item(one, catalog) for one in found], "next": following, "behind": behind}


def _index(at: Services) -> SearchIndex:
    if at.search is None:
        raise StorageError("this server has no search index", hint="Its log says why it could not be opened.")
    return at.search


def _wanted(request: Request, catalog: Catalog, limit: int) -> Wanted:
    query = request.query_params
    words = query.get("q", "")
    if len(words) > WORDS_CHARS_MAX:
        raise InvalidField("q", f"has more than {WORDS_CHARS_MAX} characters", hint="Search for fewer words.")
    given = {name: query.get(name, "").strip() or None for name in FILTERS}
    sort = given["kind"]
    if sort is not None and sort not in SORTS:
        raise InvalidField("kind", f"{sort!r} is none of {', '.join(SORTS)}")
    tasks, goals = _in_status(catalog, given["status"])
    return Wanted(
        words=words,
        sort=sort,
        project_id=given["project_id"],
        goal_id=given["goal_id"],
        agent=given["agent"],
        host=given["host"],
        since=_instant("since", given["since"], at_end=False),
        until=_instant("until", given["until"], at_end=True),
        tasks=tasks,
        goals=goals,
        before=optional_number(request, "after"),
        limit=limit,
    )


def _in_status(catalog: Catalog, status: str | None) -> tuple[list[str] | None, list[str] | None]:
    """The tasks and the goals that stand in a status now. It is asked of the catalog, so that it cannot be stale."""
    if status is None:
        return None, None
    if status not in rendering.STATUSES:
        raise InvalidField("status", f"{status!r} is none of {', '.join(rendering.STATUSES)}")
    return _ids(catalog.tasks.in_status(status)), _ids(catalog.goals.in_status(status))


def _ids(keys: Ordered[Any]) -> list[str]:
    return [key[2] for key in keys]


def _instant(name: str, text: str | None, *, at_end: bool) -> int | None:
    """A time with its offset, or a date for the whole of that day (UTC)."""
    if text is None:
        return None
    is_date = _DATE.fullmatch(text) is not None
    instant = parse_instant(f"{text}T00:00:00Z" if is_date else text)
    if instant is None:
        raise InvalidField(name, f"{text!r} is no instant", hint="Write 2026-05-31, or RFC 3339 with an offset.")
    return instant + _DAY_NS - 1 if is_date and at_end else instant


def _item(found: Found, catalog: Catalog) -> Json:
    task_id = found.task_id
    if task_id is None and found.root.startswith(_TASK_ROOT):
        task_id = found.root.removeprefix(_TASK_ROOT)
    goal_id = found.root.removeprefix(_GOAL_ROOT) if found.root.startswith(_GOAL_ROOT) else None
    task = catalog.work.tasks.get(task_id) if task_id is not None else None
    goal = catalog.work.goals.get(goal_id) if goal_id is not None else None
    status = task.status if task is not None else catalog.work.status_of(goal) if goal is not None else None
    return {
        "kind": found.sort,
        "excerpt": [{"text": text, "hit": hit} for text, hit in found.excerpt],
        "at": format_instant(found.at),
        "actor": found.actor,
        "title": _first([goal.title if goal is not None else "", task.title if task is not None else ""]),
        "status": status,
        "project_id": found.project_id,
        "goal_id": goal_id,
        "task_id": task_id,
        "session_id": None if kinds.is_own_stream(found.session_id) else found.session_id,
        "seq": found.seq,
        "position": found.position,
        "agent": found.agent,
        "host": found.host,
        "copies": found.copies,
    }


def _first(texts: Iterable[str]) -> str:
    return next((text for text in texts if text), "")


def _behind(store: Heads, index: Heads) -> int:
    return sum(max(0, there - here) for there, here in zip(store, index, strict=True))
