"""The views of projections, filled with what the store and this server know besides. For JSON and for pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ledger.commands.reading import unknown
from ledger.errors import InvalidField
from ledger.events.kinds import is_own_stream
from ledger.events.model import goal_root, task_stream
from ledger.http.services import Services
from ledger.store.base import Delivery, Heads, StreamInfo
from projections import fleet as fleets
from projections.goal import Integrity, Root, goal_view, session_view, task_view
from projections.session import Lost, StreamFacts

Json = dict[str, Any]
STREAMS_COUNTED_MAX = 10_000


async def goal(at: Services, goal_id: str, *, at_heads: Heads | None = None, **paging: Any) -> Json:
    """Raises NotFound."""
    name = goal_root(goal_id)
    root, heads = await _root(at, name, at_heads)
    found = goal_view(root, integrity=await integrity(at, name), cursor=at.cursor(heads), **paging)
    if found is None:
        raise unknown("goal", goal_id)
    return found


async def task(at: Services, task_id: str, *, at_heads: Heads | None = None, **paging: Any) -> Json:
    """Raises NotFound."""
    info = await at.store.stream(task_stream(task_id))
    if info is None:
        raise unknown("task", task_id)
    root, heads = await _root(at, info.root, at_heads)
    counted = await integrity(at, info.root, task_id)
    found = task_view(root, task_id, integrity=counted, cursor=at.cursor(heads), **paging)
    if found is None:
        raise unknown("task", task_id)
    return found


async def session(at: Services, session_id: str) -> Json:
    """Raises NotFound."""
    info = await at.store.stream(session_id)
    if info is None or info.task_id is None:
        raise unknown("session", session_id)
    root, heads = await at.reader.root(info.root)
    found = session_view(root, session_id, facts=await facts(at, info), cursor=at.cursor(heads))
    if found is None:
        raise unknown("session", session_id)
    return found


async def listing(at: Services, page: Callable[..., Json], **filters: Any) -> Json:
    """One page of `projections.catalog.goals` or `.tasks`."""
    try:
        return page(await at.reader.catalog(), **filters)
    except KeyError as error:
        after = filters.get("after")
        raise InvalidField("after", f"{after!r} is not in the list", hint="Give `next` as it came.") from error


async def fleet(at: Services) -> Json:
    catalog = await at.reader.catalog()
    heartbeats = {
        saddle: fleets.Heartbeat(heard.at, heard.host, heard.version) for saddle, heard in at.pulse.saddles.items()
    }
    pulses = await at.store.last_recorded_at(fleets.working_sessions(catalog))
    return fleets.fleet_view(catalog, pulses, heartbeats, now=at.clock(), silent_after=at.silent_after_ns)


async def integrity(at: Services, root: str, task_id: str | None = None) -> Integrity:
    """How the events of a root, or of one task of it, came in."""
    deliveries = await at.store.deliveries(root)
    streams = {info.stream: info for info in await at.store.streams_of(root, limit=STREAMS_COUNTED_MAX)}
    wanted = [
        info
        for info in streams.values()
        if not is_own_stream(info.stream) and (task_id is None or info.task_id == task_id)
    ]
    names = {info.stream for info in wanted}
    counted = [delivery for delivery in deliveries if delivery.stream in names]
    missing = 0
    for info in wanted:
        if info.contiguous:
            missing += sum(last - first + 1 for first, last in await at.store.gaps(info.stream))
    return Integrity(
        deliveries=sum(delivery.deliveries for delivery in counted),
        duplicates=sum(delivery.duplicates for delivery in counted),
        conflicts=sum(delivery.conflicts for delivery in counted),
        missing=missing,
    )


async def facts(at: Services, info: StreamInfo) -> StreamFacts:
    deliveries = [one for one in await at.store.deliveries(info.root) if one.stream == info.stream]
    counts = deliveries[0] if deliveries else Delivery(info.stream)
    return StreamFacts(
        events=info.events,
        high_seq=info.high_seq,
        last_at=info.last_recorded_at,
        missing=tuple(await at.store.gaps(info.stream)) if info.contiguous else (),
        conflicts=tuple(
            Lost(lost.seq, lost.kind, lost.actor, lost.payload, lost.received_at)
            for lost in await at.store.losers(info.stream)
        ),
        deliveries={
            "deliveries": counts.deliveries,
            "duplicates": counts.duplicates,
            "conflicts": counts.conflicts,
            "late": counts.late,
            "results_repeated": counts.results_repeated,
        },
    )


async def _root(at: Services, root: str, at_heads: Heads | None) -> tuple[Root, Heads]:
    if at_heads is None:
        return await at.reader.root(root)
    return await at.reader.root_at(root, at_heads), at_heads
