"""The built-in gate of a loop: its brakes, how far each is, and the one that holds it."""

from __future__ import annotations

import msgspec

from projections.loop_reasons import Reason
from projections.loop_state import Loop
from projections.usage import NANO

NO_PROGRESS_ROUNDS = 2
CLEARED_BY_A_RESUME = (Reason.SCORE_PLATEAU, Reason.NO_PROGRESS, Reason.PASSED)  # the others hold on


class Brake(msgspec.Struct, frozen=True):
    """`value` of `limit` in `unit`; it holds the loop where `holds`."""

    reason: Reason
    value: float
    limit: float
    unit: str
    holds: bool


def brakes_of(loop: Loop) -> list[Brake]:
    """The brakes that are on, in the order in which the gate asks them."""
    on = loop.brakes
    found = []
    if on.max_iterations is not None:
        found.append(_upto(Reason.MAX_ITERATIONS, loop.iteration_count, on.max_iterations, "rounds"))
    if on.max_budget_usd is not None:
        found.append(_upto(Reason.BUDGET_EXHAUSTED, cost_usd(loop) or 0.0, on.max_budget_usd, "USD"))
    if on.max_wall_s is not None:
        found.append(_upto(Reason.WALL_TIME_EXHAUSTED, loop.agent_seconds, on.max_wall_s, "s"))
    if on.score_plateau_window > 0:
        found.append(_plateau(loop, on.score_plateau_window))
    if on.no_progress:
        found.append(_upto(Reason.NO_PROGRESS, _idle_rounds(loop), NO_PROGRESS_ROUNDS, "rounds"))
    if on.stop_on_pass:
        found.append(_upto(Reason.PASSED, int(_passed(loop)), 1, "passes"))
    return found


def held_by(loop: Loop) -> str | None:
    """Why the built-in gate lets no tick through: `halted:REASON`, or the first brake that holds; None if it does."""
    if loop.halt is not None:
        return f"halted:{loop.halt.halt_reason}"
    return next((str(brake.reason) for brake in brakes_of(loop) if brake.holds), None)


def cost_usd(loop: Loop) -> float | None:
    """What its agents said they cost; None where none named a cost."""
    whole = loop.usage.whole
    return whole.cost_nano_usd / NANO if whole.cost_reports else None


def _upto(reason: Reason, value: float, limit: float, unit: str) -> Brake:
    return Brake(reason, value, limit, unit, value >= limit)


def _plateau(loop: Loop, window: int) -> Brake:
    """The window counts from where a person last spoke. No gain across it: no score is above the first one."""
    rounds = loop.since
    scores = [one.verdict.score for one in rounds if one.verdict and one.verdict.score is not None][-window:]
    flat = 0  # how many of the newest scores have brought no gain
    for n in range(1, len(scores) + 1):
        if max(scores[-n:]) <= scores[-n]:
            flat = n
    failing = bool(rounds) and rounds[-1].verdict is not None and not rounds[-1].verdict.passed
    return Brake(Reason.SCORE_PLATEAU, flat, window, "scores", failing and flat >= window)


def _idle_rounds(loop: Loop) -> int:
    """How many of the newest rounds have changed nothing, since a person last spoke."""
    count = 0
    for one in reversed(loop.since):
        if one.changed is not False:
            break
        count += 1
    return count


def _passed(loop: Loop) -> bool:
    rounds = loop.since
    return bool(rounds) and rounds[-1].verdict is not None and rounds[-1].verdict.passed
