from __future__ import annotations

from immutables import Map

from ledger.daemons.loop.deciding import (
    VAIN_STARTS_MAX,
    Begin,
    Complete,
    Halt,
    RunRole,
    broken_off_too_often,
    next_step,
)
from projections.loop_reasons import Reason
from projections.loop_state import Halt as Halted
from projections.loop_state import Loop, RoleRun, Round, Verdict

ROLES = ("implement", "verify", "orchestrate")
VERDICT = Verdict(True, 1.0)


def loop(*rounds: Round, **fields: object) -> Loop:
    return Loop("t", rounds=Map({one.tick: one for one in rounds}), **fields)  # type: ignore[arg-type]


def begun(tick: int, *roles: RoleRun, **fields: object) -> Round:
    return Round(tick, (0,), roles=Map({one.role: one for one in roles}), **fields)  # type: ignore[arg-type]


def test_a_loop_without_an_open_round_begins_the_next_number() -> None:
    assert next_step(loop(), ROLES) == Begin(1)
    assert next_step(loop(begun(1, completed_seq=5)), ROLES) == Begin(2)


def test_a_round_that_was_broken_off_is_gone_on_with_at_the_role_that_is_missing() -> None:
    assert next_step(loop(begun(3)), ROLES) == RunRole(3, "implement")
    one = begun(3, RoleRun(1, "implement", 0))
    assert next_step(loop(one), ROLES) == RunRole(3, "verify")
    assert next_step(loop(one), ("implement", "verify")) == RunRole(3, "verify")


def test_a_round_that_was_halted_is_given_up_and_its_number_never_used_again() -> None:
    halts = Map({4: Halted(4, 0, "verifier_failed", "verifier_failed", tick=1)})
    assert next_step(loop(begun(1, RoleRun(1, "implement", 0)), halts=halts), ROLES) == Begin(2)


def test_an_implementer_that_failed_halts_whenever_that_is_found_out() -> None:
    step = next_step(loop(begun(1, RoleRun(1, "implement", 0, exit_code=2, problem="why"))), ROLES)
    assert step == Halt(Reason.IMPLEMENT_FAILED, "why", 1)


def test_only_a_verdict_completes_and_only_after_every_role() -> None:
    verified = RoleRun(2, "verify", 0, verdict=VERDICT)
    one = begun(1, RoleRun(1, "implement", 0), verified)
    assert next_step(loop(one), ROLES) == RunRole(1, "orchestrate")
    done = begun(1, RoleRun(1, "implement", 0), verified, RoleRun(3, "orchestrate", 0, exit_code=9))
    assert next_step(loop(done), ROLES) == Complete(1, VERDICT)


def test_a_round_that_is_broken_off_again_and_again_is_halted() -> None:
    starts = tuple(range(10, 10 + VAIN_STARTS_MAX))
    assert broken_off_too_often(loop(Round(1, starts[1:]))) is None
    halt = broken_off_too_often(loop(Round(1, starts)))
    assert halt is not None
    assert (halt.reason, halt.tick) == (Reason.BROKEN_OFF, 1)
    finished = RoleRun(starts[0], "implement", 0)
    assert broken_off_too_often(loop(Round(1, starts, roles=Map({"implement": finished})))) is None


def test_without_a_verdict_it_halts_and_says_why() -> None:
    one = begun(1, RoleRun(2, "verify", 0, problem="it said nothing"))
    assert next_step(loop(one), ("verify",)) == Halt(Reason.VERIFIER_FAILED, "it said nothing", 1)
    assert isinstance(next_step(loop(), ("implement",)), Halt)
