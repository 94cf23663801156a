"""What a page says of incidents in words, before they are markup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ledger.http.page_words import capital, in_path, number
from projections.incidents import HIGH, SEVERITIES
from projections.incidents_board import EXCLUDED, REJECTED, UNMENTIONED
from projections.incidents_decided import ACKNOWLEDGED, OPEN, RESOLVED

Json = Mapping[str, Any]

# The classes of marks are those of tasks
DOTS = {ACKNOWLEDGED: "suspended", RESOLVED: "done"}
HOW = {EXCLUDED: "Excluded", REJECTED: "Not fit to be filed", UNMENTIONED: "The judge said nothing of it"}


def path_of_session(session_id: str | None, seq: int | None = None) -> str | None:
    """Where a session, or one of its events, is shown; None where there is none."""
    if session_id is None:
        return None
    path = f"/sessions/{in_path(session_id)}"
    return path if seq is None else f"{path}?around={seq}#e-{seq}"


def dot_of(incident: Json) -> str:
    if incident["status"] == OPEN:
        return "failed" if incident["severity"] == HIGH else "waiting"
    return DOTS[incident["status"]]


def headline(counts: Mapping[str, Mapping[str, int]], registers: Sequence[Json]) -> str:
    """How the incidents stand, and what nobody knows, in sentences. What could not be scored is never called well."""
    if not registers:
        return "No sweep has told anything yet."
    unresolved = {severity: counts[severity][OPEN] + counts[severity][ACKNOWLEDGED] for severity in SEVERITIES}
    new = sum(counts[severity][OPEN] for severity in SEVERITIES)
    said = [_unresolved(sum(unresolved.values()), unresolved[HIGH], new), *_unscored(registers)]
    return " ".join(said)


def high_unresolved(counts: Mapping[str, Mapping[str, int]]) -> tuple[int, str]:
    """(how many HIGH incidents nobody has acknowledged, a sentence on all that are not resolved: empty for none)."""
    new = counts[HIGH][OPEN]
    count = new + counts[HIGH][ACKNOWLEDGED]
    if not count:
        return 0, ""
    rest = "" if not new else ", not acknowledged yet" if count == 1 else f", {number(new)} not acknowledged yet"
    return new, f"{capital(number(count))} HIGH {'incident is' if count == 1 else 'incidents are'} unresolved{rest}."


def _unresolved(count: int, high: int, new: int) -> str:
    if not count:
        return "No incident that was found is unresolved."
    parts = [f"{number(count)} {'incident is' if count == 1 else 'incidents are'} unresolved"]
    if high:
        parts.append(f"{number(high)} HIGH")
    if new and new < count:
        parts.append(f"{number(new)} not acknowledged yet")
    return f"{capital(', '.join(parts))}."


def _unscored(registers: Sequence[Json]) -> list[str]:
    said = []
    if count := sum(one["unscored"] or 0 for one in registers):
        said.append(f"{capital(number(count))} {'session' if count == 1 else 'sessions'} could not be scored.")
    failed = sum(one["looked_at"]["counts"].get("sources_failed", 0) for one in registers if one["looked_at"])
    if failed:
        said.append(f"{capital(number(failed))} {'source' if failed == 1 else 'sources'} could not be looked at.")
    if blind := sum(one["looked_at"] is None for one in registers):
        said.append(f"Of {number(blind)} {'register' if blind == 1 else 'registers'} no sweep has looked yet.")
    return said
