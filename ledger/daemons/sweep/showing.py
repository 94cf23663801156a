"""`ledgerd sweep scan --show`: every candidate as text, with the rule that fired and what stands around it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from ledger.daemons.sweep.ending import counted
from ledger.daemons.sweep.model import (
    ALARMED,
    DESTROYS,
    FAINT,
    KILLS,
    OBJECTED,
    REMOVES,
    RISKS,
    STOPS,
    WENT_ROUND,
    WENT_WRONG,
    Candidate,
    Candidates,
)

RANKS = {
    DESTROYS: "rewrites history or destroys data",
    REMOVES: "removes real paths",
    STOPS: "stops services",
    KILLS: "kills",
    RISKS: "risks",
    OBJECTED: "objected",
    ALARMED: "alarmed",
    WENT_WRONG: "went wrong",
    WENT_ROUND: "went round in circles",
    FAINT: "may be nothing",
}


def shown(sessions: Iterable[Candidates]) -> Iterator[str]:
    """Lines of text: each session, its candidates with the worst first, and at the end how often each rule fired.
    Nothing in them can move a terminal's cursor."""
    rules: Counter[str] = Counter()
    count = moments = 0
    for session in sessions:
        count += 1
        moments += session.moments
        rules.update(candidate.rule for candidate in session.found)
        yield from _session(session)
    found = counted(sum(rules.values()), "candidate")
    yield f"{found} of {counted(count, 'session')}, {counted(moments, 'moment')}"
    yield from (f"  {times:>5,}  {rule}" for rule, times in sorted(rules.items(), key=lambda one: (-one[1], one[0])))


def _session(session: Candidates) -> Iterator[str]:
    found = session.session
    yield f"{found.source}  {_plain(session.title)}"
    yield f"  {_plain(found.where)}" + (f"  in {_plain(session.cwd)}" if session.cwd else "")
    left_out = f", {session.left_out:,} more of the same rules left out" if session.left_out else ""
    yield f"  {counted(session.moments, 'moment')}, {counted(len(session.found), 'candidate')}{left_out}"
    for candidate in session.found:
        yield from _candidate(candidate)
    yield ""


def _candidate(candidate: Candidate) -> Iterator[str]:
    times = f"  ×{candidate.count:,}" if candidate.count > 1 else ""
    at = f"  {_plain(candidate.at)}" if candidate.at else ""
    yield f"  {candidate.rule}  ({RANKS[candidate.rank]}){times}  seq {candidate.seq}{at}"
    yield f"    {candidate.why}"
    yield f"    {_plain(candidate.snippet)}"
    yield from (f"      | {_plain(line)}" for line in candidate.turn)
    yield from (f"      > {_plain(line)}" for line in candidate.evidence)


def _plain(text: str) -> str:
    """Without anything that is not printed as itself."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
