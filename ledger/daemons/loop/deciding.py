"""What a tick does next: pure, from the state alone. A tick that was broken off goes on by the same function.

A round that was begun and neither completed nor halted is gone on with: roles that have finished are not run again,
the one that was in the middle is. So no round is lost, and since rounds are counted by their number, none twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from projections.loop_reasons import Reason
from projections.loop_state import IMPLEMENT, VERIFY, Loop, Round, Verdict

VAIN_STARTS_MAX = 20


class Begin(msgspec.Struct, frozen=True):
    """Begin a round of that number."""

    tick: int


class RunRole(msgspec.Struct, frozen=True):
    tick: int
    role: str


class Halt(msgspec.Struct, frozen=True):
    """Stand until a person resumes. `halt_reason` is what the loop waits for, by default the reason."""

    reason: Reason
    detail: str = ""
    tick: int | None = None
    files: tuple[str, ...] = ()
    halt_reason: Reason | None = None


class Complete(msgspec.Struct, frozen=True):
    tick: int
    verdict: Verdict


Step = Begin | RunRole | Halt | Complete


def next_step(loop: Loop, roles: Sequence[str]) -> Step:
    """`roles` are those that the loop has, in their order. The gate has let the tick through."""
    one = loop.open_round
    if VERIFY not in roles:
        detail = "it has no verify role, and without a verdict no round can be completed"
        return Halt(Reason.VERIFIER_FAILED, detail, one.tick if one else None)
    if one is None:
        return Begin(loop.next_tick)
    implemented = one.roles.get(IMPLEMENT)
    if implemented is not None and implemented.exit_code != 0:
        return Halt(Reason.IMPLEMENT_FAILED, implemented.problem, one.tick)
    for role in roles:
        if role not in one.roles:
            return RunRole(one.tick, role)
    return _judged(one)


def broken_off_too_often(loop: Loop) -> Halt | None:
    """A round that is taken up again and again, and no role of it ever finishes, costs without end: it is halted."""
    one = loop.open_round
    if one is None or one.vain_starts < VAIN_STARTS_MAX:
        return None
    detail = f"it was taken up {one.vain_starts} times and broken off each time before its next role had finished"
    return Halt(Reason.BROKEN_OFF, detail, one.tick)


def _judged(one: Round) -> Step:
    verified = one.roles[VERIFY]
    if verified.verdict is None:
        return Halt(Reason.VERIFIER_FAILED, verified.problem, one.tick)
    return Complete(one.tick, verified.verdict)
