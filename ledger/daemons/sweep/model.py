"""What the rooms of the sweep hand to each other: sessions that sources find, what was said and done in them, and the
moments that are worth a judge's attention.

    source.sessions() → Found | Unreadable        one look at what there is; nothing is read yet
    source.read(found) → SessionText              its moments, in order, as they are read
    prefilter.candidates(session) → Candidates    the worst first

A source raises SourceFailed where it cannot be looked at as a whole, and SessionUnreadable, also in the middle of the
moments, where one session cannot be read: then nothing about that session is to be recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import msgspec

from ledger.errors import LedgerError

# Kinds of candidates: what was said, what was done, what failed, what a good end warned of, how a session went
SAID, DONE, FAILED, WARNED, BEHAVED = "said", "done", "failed", "warned", "behaved"

# Ranks of candidates: the worst come first. The five of commands are the order in which they are judged.
DESTROYS, REMOVES, STOPS, KILLS, RISKS = 0, 1, 2, 3, 4
OBJECTED, ALARMED, WENT_WRONG, WENT_ROUND, FAINT = 5, 6, 7, 8, 9


class SourceFailed(LedgerError):
    """A source could not be looked at as a whole: its folder, its database or its server."""

    code = "source_failed"
    hint = "The other sources were read. Mend this one, and the next run looks at it again."


class SessionUnreadable(LedgerError):
    """One session could not be read. It is reported, not recorded, and tried again by the next run."""

    code = "session_unreadable"


class Found(msgspec.Struct, frozen=True):
    """A session as its source found it. `key` names it in the state that it is in: when it has grown, it has another.

    `where` is a file's path, or an address, for people and for `scan.exclude`; `at_ns` when it last changed (ns since
    the epoch), None where that is not known; `size` in bytes, 0 where that is not known.
    """

    source: str
    key: str
    where: str
    agent: str
    session_id: str | None = None
    at_ns: int | None = None
    size: int = 0


class Unreadable(msgspec.Struct, frozen=True):
    """A session of which even the key could not be told in full, or whose reading failed, and why."""

    source: str
    key: str
    where: str
    why: str


class Moment(msgspec.Struct, frozen=True, gc=False):
    """One event of a session, whatever it was read from. `kind` and `payload` as in `ledger.events.kinds`; `actor` is
    `user` (a person), `model` or `harness`; `at` an instant as it was written, or None."""

    session_id: str
    seq: int
    kind: str
    actor: str
    payload: dict[str, Any]
    at: str | int | float | None = None


class SessionText(msgspec.Struct, frozen=True):
    """A session that is being read. `moments` can be gone through once, and reads as it goes: memory stays bounded
    whatever the size. Iterating may raise SessionUnreadable."""

    found: Found
    title: str
    cwd: str | None
    moments: Iterable[Moment]


class Source(Protocol):
    """Where sessions come from. Reads, and never writes."""

    @property
    def name(self) -> str: ...

    @property
    def type(self) -> str: ...

    def sessions(self) -> Iterator[Found | Unreadable]:
        """All that there are, the longest unchanged first, each key once. Raises SourceFailed."""
        ...

    def read(self, found: Found) -> SessionText:
        """Raises SessionUnreadable."""
        ...


class Candidate(msgspec.Struct, frozen=True):
    """A moment that may be damage, and what shows it. All texts are redacted and of bounded length.

    `rule` is the name of the rule that fired (`git-push-force`), `why` what it looks for, as a sentence. `snippet` is
    what fired; for kind BEHAVED it is a digest of numbers alone. `turn` are the lines around it, in order, each
    beginning with who speaks; `evidence` the lines behind it (what a command printed). `count` says how often the
    same fired in the session. `seq` is where it fired first, in `session_id` (a subagent's may differ from the one
    found). `at` is an instant in UTC (2026-03-01T10:00:00Z), or None.
    """

    source: str
    key: str
    session_id: str
    seq: int
    rule: str
    kind: str
    rank: int
    why: str
    snippet: str
    turn: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    count: int = 1
    at: str | None = None


class Candidates(msgspec.Struct, frozen=True):
    """What the prefilter makes of one session: `found`, the worst first, each rule and text once. `title` and `cwd`
    are redacted. `moments` says how many were read, `left_out` how many candidates the prefilter itself dropped
    because a session had too many to hold."""

    session: Found
    title: str
    cwd: str | None
    found: tuple[Candidate, ...]
    moments: int = 0
    left_out: int = 0
