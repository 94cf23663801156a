"""The incidents of all registers at once, as the sessions of all sweeps tell of them: what there is. How it comes to
be is in `incidents_folding`.
"""

from __future__ import annotations

import hashlib
from datetime import date, timedelta

import msgspec
from immutables import Map

from ledger.events.times import format_instant
from projections.incidents import Behind

EXCLUDED, REJECTED, UNMENTIONED = "excluded", "rejected", "unmentioned"


class Sighting(msgspec.Struct, frozen=True, gc=False):
    """An incident as a run filed it (`filed`), or met it again. `date` is when it happened, `at` (ns) when the run
    judged it, `sweep` the run's session."""

    at: int
    sweep: str
    seq: int
    filed: bool
    title: str
    date: str
    sessions: tuple[Behind, ...] = ()
    severity: str = ""
    category: str = ""
    what: str = ""
    cost: str = ""
    lesson: str = ""

    @property
    def rank(self) -> tuple[int, str, int]:
        return (self.at, self.sweep, self.seq)


class Found(msgspec.Struct, frozen=True):
    """What is known of one incident. `head` is the filing that counts; None as long as none has been read."""

    id: str
    register: str
    fingerprint: str
    head: Sighting | None = None
    again: Map[str, Sighting] = Map()


class Sweeping(msgspec.Struct, frozen=True):
    """A run. `status` is empty while it goes on; `has_looked` says that it got as far as looking at its sources.
    `next_seq` is the first seq of its session that has not been read, `result_seq` where its result stands."""

    session_id: str
    task_id: str
    opened_position: int
    started_at: int
    register: str = ""
    title: str = ""
    status: str = ""
    headline: str = ""
    ended_at: int | None = None
    counts: Map[str, int] = Map()
    unscored: Map[str, str] = Map()
    next_seq: int = 0
    result_seq: int | None = None

    @property
    def has_looked(self) -> bool:
        return "sessions_unreadable" in self.counts

    @property
    def is_over(self) -> bool:
        return self.result_seq is not None and self.next_seq > self.result_seq

    @property
    def rank(self) -> tuple[int, str]:
        return (self.started_at, self.session_id)


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """A candidate that became no incident, and where it stands, as far as that was said."""

    session: str
    rule: str
    snippet: str
    session_id: str | None = None
    seq: int | None = None


class Exclusion(msgspec.Struct, frozen=True, gc=False):
    """Candidates that became no incident. `how`: the judge excluded them, or gave an incident that could not be filed
    (`title`), or said nothing of them. `duplicate` where they are another incident once more."""

    at: int
    sweep: str
    how: str
    reason: str
    candidates: tuple[Candidate, ...] = ()
    title: str = ""
    duplicate: bool = False


class Week(msgspec.Struct, frozen=True, gc=False):
    """The runs of a register that began in a week: how many, how many of them failed, and the sessions that they
    looked at and those that they could not."""

    runs: int = 0
    failed: int = 0
    looked_at: int = 0
    unscored: int = 0


class Register(msgspec.Struct, frozen=True):
    """A register. `last` is its newest run that has ended, `look` the newest of those that looked at the sources.
    `weeks` are by the date of their Monday."""

    name: str
    title: str = ""
    titled_at: int = 0
    last: Sweeping | None = None
    look: Sweeping | None = None
    weeks: Map[str, Week] = Map()
    exclusions: Map[str, Exclusion] = Map()


class Board(msgspec.Struct, frozen=True):
    """`found` by `incident_id`, `registers` by name; `open` are the runs that are not over, by session."""

    found: Map[str, Found] = Map()
    registers: Map[str, Register] = Map()
    open: Map[str, Sweeping] = Map()


def incident_id(register: str, fingerprint: str) -> str:
    """What an incident is known by over all registers, in paths too."""
    return hashlib.sha256(f"{register}\n{fingerprint}".encode(errors="replace")).hexdigest()[:16]


def date_of(day: str) -> str | None:
    """A date as `YYYY-MM-DD`; None where the text is none."""
    try:
        return date.fromisoformat(day).isoformat()
    except ValueError:
        return None


def week_of(day: str) -> str:
    """The date of the Monday of the week of a date (`YYYY-MM-DD`)."""
    found = date.fromisoformat(day)
    return (found - timedelta(days=min(found.weekday(), found.toordinal() - 1))).isoformat()


def day_of(at: int) -> str:
    """The date (UTC) of an instant in ns."""
    return format_instant(at)[:10]
