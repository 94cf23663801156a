"""How a run ended, in the words of its headline, its notes and its counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from pathlib import Path

import msgspec

from ledger.daemons.sweep.filing import Filing, Plan
from ledger.daemons.sweep.hooks import Told
from ledger.daemons.sweep.scanning import Scanned
from projections.incidents import SEVERITIES
from projections.sweep import FAILED, OK, QUIET

UNREADABLE_SHOWN = 5


class Ended(msgspec.Struct, frozen=True):
    """The end of a run. `notes` are further lines for a person, `hint` what to do about a failure."""

    status: str
    headline: str
    notes: tuple[str, ...] = ()
    filed: tuple[Filing, ...] = ()
    counts: Mapping[str, int] = {}
    report: Path | None = None
    hint: str = ""

    @property
    def is_good(self) -> bool:
        return self.status != FAILED

    def lines(self) -> list[str]:
        return [
            self.headline,
            *(f"{filing.severity} {filing.date} {filing.title}" for filing in self.filed),
            *self.notes,
        ]

    def told(self) -> Told:
        counts = {name: self.counts.get(name, 0) for name in ("filed", "high", "medium", "low", "excluded")}
        report = "" if self.report is None else str(self.report)
        return Told(self.status, self.headline, "\n".join(self.lines()) + "\n", **counts, report=report)


def good(scanned: Scanned, plans: Sequence[Plan], report: Path | None, notes: Sequence[str]) -> Ended:
    """A run that came to its end. Where a source could not be looked at it is a failed one all the same: what nobody
    looked at is not called healthy."""
    headline = headline_of(plans) if plans else quiet_headline(scanned)
    status = OK if plans else QUIET
    if scanned.failed:
        status = FAILED
        headline = f"{headline}; {counted(len(scanned.failed), 'source')} could not be looked at"
    return Ended(status, headline, tuple(notes), _filed(plans), counts_of(scanned, plans), report)


def failed(
    why: str, hint: str, scanned: Scanned | None, plans: Sequence[Plan], report: Path | None, notes: Sequence[str]
) -> Ended:
    headline = f"{headline_of(plans)}; then {why}" if plans else why
    return Ended(FAILED, headline, tuple(notes), _filed(plans), counts_of(scanned, plans), report, hint)


def headline_of(plans: Sequence[Plan]) -> str:
    """`2 incidents filed: 1 HIGH, 1 LOW; 3 candidates excluded`."""
    filed = _filed(plans)
    parts = [f"{counted(len(filed), 'incident')} filed"]
    severities = {severity: sum(one.severity == severity for one in filed) for severity in SEVERITIES}
    if filed:
        parts[0] += ": " + ", ".join(f"{count} {severity}" for severity, count in severities.items() if count)
    if known := sum(len(plan.recurring) for plan in plans):
        parts.append(f"{known} known already")
    if excluded := sum(plan.counts["excluded"] for plan in plans):
        parts.append(f"{counted(excluded, 'candidate')} excluded")
    if rejected := sum(len(plan.rejected) for plan in plans):
        parts.append(f"{rejected} rejected")
    return "; ".join(parts)


def quiet_headline(scanned: Scanned) -> str:
    looked_at = len(scanned.clean) + len(scanned.excluded)
    parts = [f"quiet: {counted(looked_at, 'session')} looked at, nothing to judge"]
    if scanned.baselined:
        parts.append(f"{counted(len(scanned.baselined), 'session')} taken as the baseline")
    if scanned.unreadable:
        parts.append(f"{counted(len(scanned.unreadable), 'session')} could not be scored")
    return "; ".join(parts)


def looked_at(scanned: Scanned) -> str:
    """All that a look came to, in one line."""
    of_each: dict[str, Sized] = {
        "clean": scanned.clean,
        "excluded": scanned.excluded,
        "for the baseline": scanned.baselined,
        "to be judged": scanned.chosen,
        "for later runs": scanned.deferred,
        "that cannot be scored": scanned.unreadable,
    }
    parts = [f"{counted(len(found), 'session')} {what}" for what, found in of_each.items() if found]
    if scanned.candidates:
        parts.append(counted(len(scanned.candidates), "candidate"))
    return ", ".join(parts) or "nothing is new"


def notes_of(scanned: Scanned) -> list[str]:
    """What a person should know of a look beside what was judged."""
    notes = [f"source {name} could not be looked at: {why}" for name, why in scanned.failed.items()]
    if scanned.deferred:
        notes.append(f"{counted(len(scanned.deferred), 'session')} left for later runs: no room for their candidates")
    if scanned.unreadable:
        notes.append(f"{counted(len(scanned.unreadable), 'session')} could not be scored, to be tried again:")
        notes += [f"  {one.where}: {one.why}" for one in scanned.unreadable[:UNREADABLE_SHOWN]]
        if len(scanned.unreadable) > UNREADABLE_SHOWN:
            notes.append(f"  and {len(scanned.unreadable) - UNREADABLE_SHOWN} more")
    return notes


def counts_of(scanned: Scanned | None, plans: Sequence[Plan]) -> dict[str, int]:
    """All that is counted of a run."""
    counts = dict(scanned.counts) if scanned is not None else {}
    for plan in plans:
        for name, count in plan.counts.items():
            counts[name] = counts.get(name, 0) + count
    return counts


def _filed(plans: Sequence[Plan]) -> tuple[Filing, ...]:
    return tuple(filing for plan in plans for filing in plan.filed)


def counted(count: int, what: str) -> str:
    """`1 session`, `2,000 sessions`."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
