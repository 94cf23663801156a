"""What is told of the incidents of all registers: by severity, then the newest; how they recur, from week to week,
and what could not be scored. Plain lists and dicts, ready for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from typing import Any

import msgspec

from ledger.events.times import format_instant
from projections.actions import links
from projections.incidents import SEVERITIES, joined, newest_first, severity_rank
from projections.incidents_board import Board, Exclusion, Found, Register, Sighting, Sweeping, Week, day_of, week_of
from projections.incidents_decided import RESOLVED, STATUSES, Decided, Standing, standing
from projections.sweep import parted

PAGE = 100
UNRESOLVED, ALL = "unresolved", "all"  # as filters: open or acknowledged; whatever its status
RECURRENCES_TOLD = 100  # of one incident, the newest
AGAIN = "again"  # beside the severities in a trend: incidents that were met once more

Json = dict[str, Any]


class Incident(msgspec.Struct, frozen=True):
    """An incident as it is told: what is known of it, the filing that gives it its words, and how it stands."""

    found: Found
    head: Sighting
    standing: Standing

    @property
    def again(self) -> list[Sighting]:
        """When it was met once more, the oldest first."""
        return sorted(self.found.again.values(), key=lambda one: one.rank)

    @property
    def last_date(self) -> str:
        return max([self.head.date, *(one.date for one in self.found.again.values())])

    @property
    def moved_at(self) -> int:
        """When something was last said of it, in ns: by a sweep or by an owner."""
        said = [self.head.at, *(one.at for one in self.found.again.values())]
        return max([*said, *(one.at for one in self.standing.decisions)])


def incident(board: Board, decided: Decided, id: str) -> Incident | None:
    """None where there is no such incident, or what filed it has not been read."""
    found = board.found.get(id)
    if found is None or found.head is None:
        return None
    return Incident(found, found.head, standing(found, decided))


def incidents(board: Board, decided: Decided) -> list[Incident]:
    """All of them, the worst first, then the newest: by when they happened last."""
    return sorted(unsorted(board, decided), key=_rank)


def unsorted(board: Board, decided: Decided) -> Iterator[Incident]:
    for found in board.found.values():
        if found.head is not None:
            yield Incident(found, found.head, standing(found, decided))


def _rank(one: Incident) -> tuple[int, tuple[int, ...], str]:
    return (severity_rank(one.head.severity), newest_first(one.last_date), one.found.id)


def listed(
    told: Sequence[Incident],
    *,
    status: str | None = None,
    severity: str | None = None,
    after: str | None = None,
    limit: int = PAGE,
) -> tuple[list[Incident], str | None]:
    """One page of `told`, in its order, and what to give as `after` for the next. `status` is one of STATUSES, or
    UNRESOLVED or ALL. Raises KeyError if `after` is no incident's id."""
    wanted = [one for one in told if _stands(one, status) and severity in (None, one.head.severity)]
    if after is not None:
        ranks = {one.found.id: _rank(one) for one in told}
        wanted = [one for one in wanted if _rank(one) > ranks[after]]
    shown = wanted[:limit]
    return shown, shown[-1].found.id if len(wanted) > len(shown) else None


def _stands(one: Incident, status: str | None) -> bool:
    if status == UNRESOLVED:
        return one.standing.status != RESOLVED
    return status in (None, ALL, one.standing.status)


def counts(told: Iterable[Incident]) -> Json:
    """How many stand in each status, by severity."""
    found: Json = {severity: dict.fromkeys(STATUSES, 0) for severity in SEVERITIES}
    for one in told:
        found[one.head.severity][one.standing.status] += 1
    return found


def item(one: Incident, sessions_max: int | None = None) -> Json:
    """An incident ready for JSON, with what is behind it: the first `sessions_max` of `session_count` sessions."""
    found, head = one.found, one.head
    again = one.again
    sessions = joined(session for sighting in (head, *again) for session in sighting.sessions)
    return {
        "id": found.id,
        "register": found.register,
        "fingerprint": found.fingerprint,
        "title": head.title,
        "date": head.date,
        "last_date": one.last_date,
        "severity": head.severity,
        "category": head.category,
        "what": head.what,
        "cost": head.cost,
        "lesson": head.lesson,
        "status": one.standing.status,
        "came_back": one.standing.came_back,
        "decisions": [
            {"status": each.status, "by": each.by, "at": format_instant(each.at), "reason": each.reason}
            for each in one.standing.decisions
        ],
        "filed_at": format_instant(head.at),
        "sweep": head.sweep,
        "updated_at": format_instant(one.moved_at),
        "times": 1 + len(again),
        "session_count": len(sessions),
        "sessions": [msgspec.to_builtins(session) for session in sessions[:sessions_max]],
        "recurrences": [
            {"title": each.title, "date": each.date, "at": format_instant(each.at), "sweep": each.sweep}
            for each in again[-RECURRENCES_TOLD:]
        ],
        "actions": links(f"/api/incidents/{found.id}", one.standing.actions),
    }


def registers(board: Board, *, register: str | None = None) -> list[Json]:
    """Each register: its newest run, and what the newest that looked at the sources could not score. `unscored` is
    None where none has looked yet: nobody knows."""
    running = {run.register for run in board.open.values() if run.register and run.ended_at is None}
    return [
        _register(one, one.name in running)
        for _, one in sorted(board.registers.items())
        if register in (None, one.name)
    ]


def _register(one: Register, is_swept_now: bool) -> Json:
    look = one.look
    return {
        "register": one.name,
        "title": one.title or one.name,
        "is_swept_now": is_swept_now,
        "last_run": None if one.last is None else _run(one.last),
        "unscored": None if look is None else look.counts.get("sessions_unreadable", 0),
        "looked_at": None if look is None else _run(look),
        "unscored_sessions": [] if look is None else _unscored(look),
    }


def _run(run: Sweeping) -> Json:
    return {
        "sweep": run.session_id,
        "task_id": run.task_id,
        "status": run.status,
        "headline": run.headline,
        "started_at": format_instant(run.started_at),
        "ended_at": None if run.ended_at is None else format_instant(run.ended_at),
        "counts": dict(sorted(run.counts.items())),
    }


def _unscored(run: Sweeping) -> list[Json]:
    return [
        {"source": source, "key": key, "why": why}
        for name, why in sorted(run.unscored.items())
        for source, key in [parted(name)]
    ]


def exclusions(board: Board, *, register: str | None = None, limit: int = PAGE) -> list[Json]:
    """What became no incident, the newest first."""
    found = [
        (name, one.name, exclusion)
        for one in board.registers.values()
        if register in (None, one.name)
        for name, exclusion in one.exclusions.items()
    ]
    found.sort(key=lambda row: row[0], reverse=True)
    return [_exclusion(register, exclusion) for _, register, exclusion in found[:limit]]


def _exclusion(register: str, one: Exclusion) -> Json:
    return {
        "register": register,
        "at": format_instant(one.at),
        "sweep": one.sweep,
        "how": one.how,
        "reason": one.reason,
        "title": one.title,
        "duplicate": one.duplicate,
        "candidates": [msgspec.to_builtins(candidate) for candidate in one.candidates],
    }


def weeks_until(now: int, count: int) -> list[str]:
    """The Mondays of the last `count` weeks (UTC), the present one the last; `now` in ns."""
    monday = date.fromisoformat(week_of(day_of(now)))
    return [(monday - timedelta(weeks=before)).isoformat() for before in range(count - 1, -1, -1)]


def trend(board: Board, told: Sequence[Incident], weeks: Sequence[str], *, register: str | None = None) -> list[Json]:
    """Each week: the incidents that happened in it by severity, those that happened again, and what the runs of that
    week looked at and could not score. `register`: only the runs of that one."""
    happened = {week: dict.fromkeys((*SEVERITIES, AGAIN), 0) for week in weeks}
    for one in told:
        for look, day in [
            (one.head.severity, one.head.date),
            *((AGAIN, each.date) for each in one.found.again.values()),
        ]:
            week = happened.get(week_of(day))
            if week is not None:
                week[look] += 1
    swept = [one for one in board.registers.values() if register in (None, one.name)]
    return [{"week": week, **happened[week], **_runs(swept, week)} for week in weeks]


def _runs(swept: Sequence[Register], week: str) -> Json:
    of_week = [one.weeks[week] for one in swept if week in one.weeks]
    return {name: sum(getattr(one, name) for one in of_week) for name in Week.__struct_fields__}
