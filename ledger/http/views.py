"""The views of projections, filled with what the store and this server know besides. For JSON and for pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ledger import prices
from ledger.commands.reading import unknown
from ledger.errors import InvalidField
from ledger.events.kinds import is_own_stream
from ledger.events.model import goal_root, task_stream
from ledger.events.times import format_instant
from ledger.http import fleet_told, loop_rows
from ledger.http.arrivals import SAID_BY_SHOWN, Arrivals, arrivals
from ledger.http.services import Services
from ledger.store.base import Delivery, Heads, StreamInfo
from projections import catalog as catalogs
from projections import fleet as fleets
from projections.goal import Root, goal_view, session_view, task_view
from projections.incidents_views import counts, unsorted
from projections.loop_reasons import Reason
from projections.narrative import milestones
from projections.remediation.story import waits_for
from projections.session import Lost, StreamFacts

Json = dict[str, Any]
SESSIONS_COUNTED_SHOWN = 20


async def goal(at: Services, goal_id: str, *, at_heads: Heads | None = None, **paging: Any) -> Json:
    """Raises NotFound."""
    name = goal_root(goal_id)
    root, heads = await _root(at, name, at_heads)
    came = await arrivals(at.store, name)
    found = goal_view(root, integrity=came.integrity(), cursor=at.cursor(heads), **paging)
    if found is None:
        raise unknown("goal", goal_id)
    found["tasks"] = [_priced(task) for task in found["tasks"]]
    return _priced(_with_arrivals(found, root, came))


async def task(at: Services, task_id: str, *, at_heads: Heads | None = None, **paging: Any) -> Json:
    """Raises NotFound."""
    info = await at.store.stream(task_stream(task_id))
    if info is None:
        raise unknown("task", task_id)
    root, heads = await _root(at, info.root, at_heads)
    came = await arrivals(at.store, info.root)
    found = task_view(root, task_id, integrity=came.integrity(task_id), cursor=at.cursor(heads), **paging)
    if found is None:
        raise unknown("task", task_id)
    found["sessions"] = [_priced(session) for session in found["sessions"]]
    found["run_id"] = task_id if (await at.runs.register()).entry(task_id) else None
    return _priced(_with_arrivals(found, root, came, task_id))


async def session(at: Services, session_id: str) -> Json:
    """Raises NotFound."""
    info = await at.store.stream(session_id)
    if info is None or info.task_id is None:
        raise unknown("session", session_id)
    root, heads = await at.reader.root(info.root)
    found = session_view(root, session_id, facts=await facts(at, info), cursor=at.cursor(heads))
    if found is None:
        raise unknown("session", session_id)
    return _priced(found)


async def listing(at: Services, page: Callable[..., Json], **filters: Any) -> Json:
    """One page of `projections.catalog.goals`, `.tasks` or `.projects`. Raises InvalidField."""
    try:
        return page(await at.reader.catalog(), **filters)
    except KeyError as error:
        raise not_in_list(filters.get("after")) from error


def not_in_list(after: str | None) -> InvalidField:
    return InvalidField("after", f"{after!r} is not in the list", hint="Give `next` as it came.")


async def fleet(at: Services) -> Json:
    heads = await at.store.heads()
    catalog = await at.reader.catalog()
    heartbeats = {
        saddle: fleets.Heartbeat(heard.at, heard.host, heard.version) for saddle, heard in at.pulse.saddles.items()
    }
    pulses = await at.store.last_recorded_at(fleets.working_sessions(catalog))
    seen = fleets.fleet_view(catalog, pulses, heartbeats, now=at.clock(), silent_after=at.silent_after_ns)
    told = await fleet_told.tell(at, seen, catalog)
    waiting = [*told["needs_you"], *await run_that_waits(at), *await loops_that_stand(at)]
    told["needs_you"] = sorted(waiting, key=lambda item: item["since"])
    told["running"] = [{**item, **await _daemons_of(at, catalog, item)} for item in told["running"]]
    incidents = counts(unsorted(*await at.incidents.standing()))
    return {**told, "incidents": incidents, "log_events": sum(heads), "cursor": at.cursor(heads)}


async def _daemons_of(at: Services, catalog: catalogs.Catalog, item: Json) -> Json:
    """`loop_id`, `run_id`: of a task that is a loop, or a run."""
    if item["kind"] == "goal":
        return {"loop_id": None, "run_id": None}
    id = item["id"]
    run = (await at.runs.register()).entry(id)
    return {"loop_id": id if catalog.work.tasks[id].loops else None, "run_id": id if run else None}


async def run_that_waits(at: Services) -> list[Json]:
    """The run that is active, where it waits for its owner, as what needs a person is listed; with its `run_id`."""
    active = await at.runs.active(await at.runs.register())
    waits = None if active is None else waits_for(active.run)
    if active is None or waits is None:
        return []
    task = (await at.reader.catalog()).work.tasks[active.run.id]
    session = task.sessions[active.run.id]
    named = {"task_id": task.id, "goal_id": task.goal_id, "title": task.title}
    asked = {"question": waits["text"], "since": waits["since"], "saddle": session.saddle}
    return [{**named, **asked, "run_id": active.run.id}]


async def loops_that_stand(at: Services) -> list[Json]:
    """The loops that were halted by what happened to them, or that a brake or a broken gate holds, as what needs a
    person is listed; with their `loop_id`. One that a person halted needs nobody, nor does one without a task."""
    found = []
    for loop, task, session in await at.loops.live():
        why = loop_rows.why_it_stands(loop)
        if why is not None and why[0] != Reason.HUMAN_INTERVENTION:
            _, question, since = why
            named: Json = {"task_id": task.id, "goal_id": task.goal_id, "title": task.title}
            asked = {"question": question, "since": format_instant(since)}
            found.append({**named, **asked, "saddle": session.saddle, "loop_id": task.id})
    return found


async def past_of_goal(at: Services, goal_id: str, stops_max: int) -> list[Json]:
    """Moments of a goal's history, evenly spaced over its rows, the oldest first: `{cursor, at, kind}`."""
    name = goal_root(goal_id)
    root, heads = await at.reader.root(name)
    bucket = at.store.bucket_of(name)
    positions = {row.saying.position: row for row in milestones(root.narrative, stops_max)}
    return [
        {
            "cursor": at.cursor((*heads[:bucket], position, *heads[bucket + 1 :])),
            "at": format_instant(row.saying.recorded_at),
            "kind": row.kind,
        }
        for position, row in sorted(positions.items())
    ]


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


def _with_arrivals(found: Json, root: Root, came: Arrivals, task_id: str | None = None) -> Json:
    """With the counts of the sessions; and in each row that ended an attempt which one that was, whether another
    followed, and how often and by whom the end was delivered."""
    ends = {
        attempt.end.position: (attempt.end, attempt.number, attempt is not root.work.tasks[name].attempt)
        for name in {row["task_id"] for row in found["events"]}
        if name in root.work.tasks
        for attempt in root.work.tasks[name].attempts
        if attempt.end is not None
    }

    def told(row: Json) -> Json:
        if row["position"] not in ends:
            return row
        end, attempt, tried_again = ends[row["position"]]
        said_by = [stream for stream in end.said_by if not is_own_stream(stream)][:SAID_BY_SHOWN]
        deliveries = came.sayings(end.said_by)
        return {**row, "attempt": attempt, "tried_again": tried_again, "deliveries": deliveries, "said_by": said_by}

    counted = came.by_session(task_id, limit=SESSIONS_COUNTED_SHOWN)
    return {**found, "events": [told(row) for row in found["events"]], "arrivals": counted}


def _priced(found: Json) -> Json:
    return {**found, "usage": prices.priced(found["usage"])}


async def _root(at: Services, root: str, at_heads: Heads | None) -> tuple[Root, Heads]:
    if at_heads is None:
        return await at.reader.root(root)
    return await at.reader.root_at(root, at_heads), at_heads
