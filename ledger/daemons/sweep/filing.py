"""From a verdict to a plan: what is filed, what is known already, what is left out and why. Pure.

The plan is kept in the journal before anything is written, and everything afterwards follows from it alone. So a run
that is killed, or whose commit fails, is finished by the next one without asking the judge again.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from ledger.daemons.sweep.judging.prompt import Known
from ledger.daemons.sweep.judging.verdict import Excluded, Judged, Rejected, Verdict
from ledger.daemons.sweep.model import Candidate
from ledger.daemons.sweep.register.texts import one_line
from ledger.events.times import NS_PER_S, parse_instant
from projections.incidents import SEVERITIES, fingerprint

SESSIONS_MAX = 50  # behind one incident
TURNS_MAX = 20  # of one of them
SNIPPET_CHARS = 160


class Turn(msgspec.Struct, frozen=True):
    """A moment of a session: where it stands, which rule picked it out, and what that rule saw."""

    seq: int
    rule: str
    snippet: str


class Session(msgspec.Struct, frozen=True):
    """A session behind something, as its source knows it, and the moments of it that count."""

    source: str
    key: str
    session_id: str = ""
    turns: tuple[Turn, ...] = ()


class Filing(msgspec.Struct, frozen=True):
    """An incident to be filed."""

    fingerprint: str
    title: str
    date: str
    severity: str
    category: str
    what: str
    cost: str
    lesson: str
    why: str
    candidates: tuple[str, ...]
    sessions: tuple[Session, ...]


class Recurring(msgspec.Struct, frozen=True):
    """An incident of the register that was met again."""

    fingerprint: str
    title: str
    date: str
    sessions: tuple[Session, ...]


class Shown(msgspec.Struct, frozen=True):
    """A candidate as reports name it; `source`, `session_id` and `seq` say where it stands."""

    id: str
    session: str
    rule: str
    snippet: str
    source: str = ""
    session_id: str = ""
    seq: int | None = None


class Plan(msgspec.Struct, frozen=True):
    """All that follows from a verdict. `judged` are the sessions that count as seen once it is written."""

    verdict: str
    date: str
    filed: tuple[Filing, ...] = ()
    recurring: tuple[Recurring, ...] = ()
    excluded: tuple[Excluded, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    unmentioned: tuple[str, ...] = ()
    patterns: str = ""
    candidates: tuple[Shown, ...] = ()
    judged: tuple[tuple[str, str], ...] = ()

    def count(self, severity: str) -> int:
        return sum(filing.severity == severity for filing in self.filed)

    @property
    def counts(self) -> dict[str, int]:
        """`filed`, and how many of each severity, in lower case; `excluded` counts candidates."""
        severities = {severity.lower(): self.count(severity) for severity in SEVERITIES}
        excluded = len({id for one in self.excluded for id in one.candidates})
        return {"filed": len(self.filed), **severities, "excluded": excluded, "rejected": len(self.rejected)}


def plan(
    verdict_id: str,
    verdict: Verdict,
    candidates: Mapping[str, Candidate],
    known: Mapping[str, Known],
    fingerprints: Container[str],
    judged: Sequence[tuple[str, str]],
    *,
    today: str,
) -> Plan:
    """`candidates` and `known` are by the numbers that the judge was given; `fingerprints` are those of all that the
    register has or ever had, `judged` the sessions that the candidates are of."""
    filed: dict[str, Filing] = {}
    recurring: list[Recurring] = []
    for incident in verdict.incidents:
        mark = fingerprint(incident.title)
        behind = [candidates[id] for id in incident.candidates]
        day = incident.date or _day_of(behind, today)
        if mark in filed:
            filed[mark] = _merged(filed[mark], incident, behind)
        elif mark in fingerprints:
            recurring.append(Recurring(mark, incident.title, day, _sessions(behind)))
        else:
            filed[mark] = _filing(mark, incident, behind, day)
    for one in verdict.excluded:
        if one.duplicate_of in known:
            behind = [candidates[id] for id in one.candidates]
            again = known[one.duplicate_of]
            recurring.append(Recurring(again.fingerprint, again.title, _day_of(behind, today), _sessions(behind)))
    return Plan(
        verdict_id,
        today,
        tuple(filed.values()),
        tuple(recurring),
        verdict.excluded,
        verdict.rejected,
        verdict.unmentioned,
        verdict.patterns,
        tuple(
            Shown(
                id,
                one_line(f"{one.source} {one.session_id}", 120),
                one.rule,
                one_line(one.snippet, SNIPPET_CHARS),
                one.source,
                one.session_id,
                one.seq,
            )
            for id, one in candidates.items()
        ),
        tuple(judged),
    )


def _filing(mark: str, incident: Judged, behind: Sequence[Candidate], day: str) -> Filing:
    return Filing(
        mark,
        incident.title,
        day,
        incident.severity,
        incident.category,
        incident.what,
        incident.cost,
        incident.lesson,
        incident.why,
        incident.candidates,
        _sessions(behind),
    )


def _merged(filing: Filing, incident: Judged, behind: Sequence[Candidate]) -> Filing:
    """One incident that the judge gave under two entries of one title."""
    return msgspec.structs.replace(
        filing,
        candidates=tuple(dict.fromkeys((*filing.candidates, *incident.candidates))),
        sessions=_joined((*filing.sessions, *_sessions(behind))),
    )


def _sessions(behind: Sequence[Candidate]) -> tuple[Session, ...]:
    return _joined(
        Session(
            one.source,
            one.key,
            one.session_id,
            (Turn(one.seq, one.rule, one_line(one.snippet, SNIPPET_CHARS)),),
        )
        for one in behind
    )


def _joined(sessions: Iterable[Session]) -> tuple[Session, ...]:
    """Each session once, with all of its turns in order."""
    turns: dict[tuple[str, str, str], dict[int, Turn]] = {}
    for one in sessions:
        found = turns.setdefault((one.source, one.key, one.session_id), {})
        for turn in one.turns:
            found.setdefault(turn.seq, turn)
    return tuple(
        Session(*name, tuple(found[seq] for seq in sorted(found))[:TURNS_MAX]) for name, found in turns.items()
    )[:SESSIONS_MAX]


def _day_of(behind: Sequence[Candidate], today: str) -> str:
    """The day (UTC) of the first of these moments whose time is known and not to come; else today."""
    for candidate in behind:
        instant = parse_instant(candidate.at)
        if instant is not None and instant >= 0:
            day = datetime.fromtimestamp(instant // NS_PER_S, UTC).date().isoformat()
            if day <= today:
                return day
    return today
