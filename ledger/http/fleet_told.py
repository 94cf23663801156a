"""What the fleet view says of each root beyond its status: its newest words, what it spent, how it came in.

This reads roots one by one, so only so many are told of; the rest of a list keeps its nulls. A root whose fold is far
behind the log is left out rather than waited for: it is folded on meanwhile, and told the next time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ledger import prices
from ledger.events.model import goal_root, task_root
from ledger.events.times import format_instant
from ledger.http.arrivals import arrivals, deliveries_of, sayings
from ledger.http.services import Services
from projections.catalog import Catalog
from projections.goal import Root
from projections.usage import usage_item

RUNNING_TOLD = 50
SILENT_TOLD = 20
FAILED_TOLD = 50
_WITHIN_S = 0.3

Json = dict[str, Any]


async def tell(at: Services, fleet: Json, catalog: Catalog) -> Json:
    """The fleet view with `current_command` and `current_since` of what runs and of what is silent, with `cost_usd`
    of what runs, `deliveries` of what failed, and the `integrity` of what runs."""
    running, silent, failed = fleet["running"], fleet["silent"], fleet["failed"]
    names = {_root_of(item) for item in [*running[:RUNNING_TOLD], *silent[:SILENT_TOLD]]}
    roots = await at.reader.roots(names, within_s=_WITHIN_S)
    return {
        **fleet,
        "silent": [{**item, **_current(roots.get(_root_of(item)), _task_of(item))} for item in silent],
        "running": [
            {**item, **_current(roots.get(_root_of(item)), _task_of(item)), **_cost(roots.get(_root_of(item)), item)}
            for item in running
        ],
        "failed": await _with_deliveries(at, failed, catalog),
        "integrity": await _integrity(at, {_root_of(item) for item in running[:RUNNING_TOLD]}),
    }


def _root_of(item: Json) -> str:
    """Of a running item, or of one that names its task and goal."""
    if item.get("kind") == "goal":
        return goal_root(item["id"])
    return task_root(_task_of(item) or "") if item["goal_id"] is None else goal_root(item["goal_id"])


def _task_of(item: Json) -> str | None:
    """The task that an item is about; None for a goal."""
    if item.get("kind") == "goal":
        return None
    return str(item.get("task_id") or item["id"])


def _current(root: Root | None, task_id: str | None) -> Json:
    current = None
    if root is not None:
        current = root.activity.current if task_id is None else root.activity.tasks.get(task_id)
    return {
        "current_command": None if current is None else current.line,
        "current_since": None if current is None else format_instant(current.since),
    }


def _cost(root: Root | None, item: Json) -> Json:
    if root is None:
        return {"cost_usd": None, "cost_estimated": False}
    task_id = _task_of(item)
    spent = prices.priced(usage_item(root.usage.whole if task_id is None else root.usage.tasks.get(task_id)))
    return {"cost_usd": spent["cost_usd"], "cost_estimated": spent["cost_estimated"]}


async def _with_deliveries(at: Services, failed: list[Json], catalog: Catalog) -> list[Json]:
    """`deliveries`: how often the failure was delivered, by all sessions that said it."""
    roots = dict.fromkeys(_root_of(item) for item in failed[:FAILED_TOLD])
    counted = {root: await deliveries_of(at.store, root) for root in roots}

    def times(item: Json) -> int | None:
        end = catalog.work.tasks[item["task_id"]].attempt.end
        deliveries = counted.get(_root_of(item))
        return None if end is None or deliveries is None else sayings(deliveries, end.said_by)

    return [{**item, "deliveries": times(item)} for item in failed]


async def _integrity(at: Services, roots: Iterable[str]) -> Json:
    found = [(await arrivals(at.store, root)).integrity() for root in roots]
    return {
        name: sum(getattr(one, name) for one in found)
        for name in ("deliveries", "duplicates", "conflicts", "missing")
    }
