"""One loop: what its rounds, verdicts, halts and costs have come to.

A loop is known by its task. Rounds are folded by tick number and everything else by seq, never by the order in which
it came: churned or repeated copies count once, and shuffled chunks make the same state.

What its agents say lies in a session beside the loop's own, so that nothing they tell the ledger is taken for a
decision of the runner: of that session only usage counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from immutables import Map
from msgspec.structs import replace

from ledger.events import kinds
from ledger.events.content import payload_object
from ledger.events.model import OPENING_SEQ, Recorded
from projections import usage as usages
from projections.fold import Projection
from projections.loop_state import (
    AGENT,
    CONFIGURED,
    HALTED,
    ITS_AGENTS,
    ORCHESTRATE,
    RESUMED,
    ROLE_FINISHED,
    ROLES,
    TASK_SET,
    TICK_COMPLETED,
    TICK_SKIPPED,
    TICK_STARTED,
    VERDICT,
    WORKTREE,
    Brakes,
    Halt,
    Logged,
    Loop,
    Loops,
    RoleRun,
    Round,
    Verdict,
)
from projections.payloads import text
from projections.session import time_of

LOG_ENTRIES_MAX = 1000
_TICK_MAX = 10**9
_SECONDS_MAX = 10**8


def evolve(loops: Loops, event: Recorded) -> Loops:
    """The loops after an event; the same object if it is no loop's."""
    if event.kind == kinds.SESSION_OPENED:
        return _opened(loops, event)
    task_id = (loops.agents if event.kind == kinds.USAGE else loops.sessions).get(event.session_id)
    if task_id is None:
        return loops
    loop = loops.loops[task_id]
    if event.kind == kinds.USAGE:
        after = replace(loop, usage=usages.evolve(loop.usage, event, 0, None))
    else:
        after = loop_after(loop, event)
    return loops if after is loop else replace(loops, loops=loops.loops.set(task_id, after))


def loop_after(loop: Loop, event: Recorded) -> Loop:
    """The loop after an event of its own session."""
    change = _CHANGES.get(event.kind)
    return loop if change is None else change(loop, event, payload_object(event.payload))


def _opened(loops: Loops, event: Recorded) -> Loops:
    session_id, task_id = event.session_id, event.task_id
    agent = payload_object(event.payload).get("agent")
    if event.seq != OPENING_SEQ or task_id is None or agent not in (AGENT, ITS_AGENTS):
        return loops
    loop = loops.loops.get(task_id) or Loop(task_id)
    if agent == ITS_AGENTS:
        return replace(loops, loops=loops.loops.set(task_id, loop), agents=loops.agents.set(session_id, task_id))
    if not loop.session_id:
        loop = replace(loop, session_id=session_id, opened_at=time_of(event))
    return replace(loops, loops=loops.loops.set(task_id, loop), sessions=loops.sessions.set(session_id, task_id))


def _configured(loop: Loop, event: Recorded, payload: dict[str, Any]) -> Loop:
    if event.seq <= loop.configured_seq:
        return loop
    config = payload.get("config")
    config = config if isinstance(config, dict) else {}
    return replace(
        loop,
        name=text(payload, "name"),
        config=config,
        config_digest=text(payload, "digest"),
        configured_seq=event.seq,
        brakes=_brakes(config.get("brakes")),
    )


def _task_set(loop: Loop, event: Recorded, payload: dict[str, Any]) -> Loop:
    loop = _log(loop, event, text(payload, "task"))
    if event.seq <= loop.task_seq:
        return loop
    return replace(loop, current_task=text(payload, "task") or None, task_seq=event.seq)


def _worktree(loop: Loop, event: Recorded, payload: dict[str, Any]) -> Loop:
    if event.seq <= loop.worktree_seq:
        return loop
    branch, path = text(payload, "branch") or None, text(payload, "path") or None
    return replace(loop, worktree_branch=branch, worktree_path=path, worktree_seq=event.seq)


def _halted(loop: Loop, event: Recorded, payload: dict[str, Any]) -> Loop:
    if event.seq in loop.halts:
        return loop
    reason = text(payload, "reason")
    halt = Halt(
        event.seq,
        time_of(event),
        reason,
        text(payload, "halt_reason") or reason,
        text(payload, "detail"),
        _tick(payload),
        _texts(payload.get("files")),
    )
    loop = replace(loop, halts=loop.halts.set(event.seq, halt))
    return _taken(_log(loop, event, reason, halt.tick), event, payload)


def _resumed(loop: Loop, event: Recorded, payload: dict[str, Any]) -> Loop:
    if event.seq in loop.resumes:
        return loop
    loop = replace(loop, resumes=loop.resumes.set(event.seq, time_of(event)))
    return _taken(_log(loop, event, ""), event, payload)


def _started(loop: Loop, event: Recorded, payload: dict[str, Any]) -> Loop:
    one = _round(loop, payload)
    if one is None or event.seq in one.starts:
        return loop
    starts = tuple(sorted((*one.starts, event.seq)))
    if event.seq == starts[0]:
        inputs = payload.get("inputs")
        inputs = inputs if isinstance(inputs, dict) else {}
        one = replace(
            one,
            started_at=time_of(event),
            task=text(payload, "task"),
            base=text(payload, "base"),
            inputs=Map({name: str(digest) for name, digest in inputs.items()}),
        )
    if event.seq == starts[-1]:
        one = replace(one, run=text(payload, "run"))
    return _with_round(loop, replace(one, starts=starts))


def _skipped(loop: Loop, event: Recorded, payload: dict[str, Any]) -> Loop:
    seconds = _number(payload.get("seconds"))
    if seconds:
        loop = replace(loop, broken_off=loop.broken_off.set(event.seq, min(seconds, _SECONDS_MAX)))
    return _log(loop, event, text(payload, "reason"))


def _role_finished(loop: Loop, event: Recorded, payload: dict[str, Any]) -> Loop:
    one, role = _round(loop, payload), payload.get("role")
    if one is None or role not in ROLES:
        return loop
    before = one.roles.get(role)
    if before is not None and before.seq <= event.seq:
        return loop
    exit_code = payload.get("exit_code")
    verdict = payload.get("verdict")
    ended = RoleRun(
        event.seq,
        role,
        time_of(event),
        exit_code if isinstance(exit_code, int) else 0,
        text(payload, "artifact"),
        min(max(_number(payload.get("seconds")) or 0.0, 0.0), _SECONDS_MAX),
        _verdict(verdict) if isinstance(verdict, dict) else None,
        text(payload, "problem"),
    )
    loop = _with_round(loop, replace(one, roles=one.roles.set(role, ended)))
    if role == ORCHESTRATE and ended.exit_code != 0:  # advisory: its failure is no more than said
        loop = _log(loop, event, f"{role} exit={ended.exit_code}", one.tick)
    return loop


def _verdict_given(loop: Loop, event: Recorded, payload: dict[str, Any]) -> Loop:
    one, verdict = _round(loop, payload), _verdict(payload)
    if one is None or verdict is None or 0 <= one.verdict_seq <= event.seq:
        return loop
    return _with_round(loop, replace(one, verdict=verdict, verdict_seq=event.seq))


def _completed(loop: Loop, event: Recorded, payload: dict[str, Any]) -> Loop:
    one = _round(loop, payload)
    if one is None or 0 <= one.completed_seq <= event.seq:
        return loop
    changed = payload.get("changed")
    one = replace(
        one,
        completed_seq=event.seq,
        completed_at=time_of(event),
        changed=changed if isinstance(changed, bool) else None,
    )
    return _log(_with_round(loop, one), event, "", one.tick)


_CHANGES = {
    CONFIGURED: _configured,
    TASK_SET: _task_set,
    WORKTREE: _worktree,
    HALTED: _halted,
    RESUMED: _resumed,
    TICK_STARTED: _started,
    TICK_SKIPPED: _skipped,
    ROLE_FINISHED: _role_finished,
    VERDICT: _verdict_given,
    TICK_COMPLETED: _completed,
}


def _round(loop: Loop, payload: Mapping[str, Any]) -> Round | None:
    tick = _tick(payload)
    return None if tick is None else loop.rounds.get(tick) or Round(tick)


def _with_round(loop: Loop, one: Round) -> Loop:
    return replace(loop, rounds=loop.rounds.set(one.tick, one))


def _log(loop: Loop, event: Recorded, said: str, tick: int | None = None) -> Loop:
    log = loop.log.add(Logged(event.seq, event.kind, said, tick or 0, time_of(event)))
    while len(log) > LOG_ENTRIES_MAX:
        log = log.remove(next(iter(log)))
    return replace(loop, log=log)


def _taken(loop: Loop, event: Recorded, payload: Mapping[str, Any]) -> Loop:
    request = payload.get("request")
    if isinstance(request, bool) or not isinstance(request, int) or request in loop.taken_requests:
        return loop
    return replace(loop, taken_requests=loop.taken_requests.set(request, event.seq))


def _verdict(payload: Mapping[str, Any]) -> Verdict | None:
    passed = payload.get("pass")
    if not isinstance(passed, bool):
        return None
    return Verdict(passed, _number(payload.get("score")), _texts(payload.get("reasons")))


def _brakes(said: object) -> Brakes:
    given = said if isinstance(said, dict) else {}
    window = given.get("score_plateau_window", 5)
    return Brakes(
        _whole(given.get("max_iterations")),
        _number(given.get("max_budget_usd")),
        _number(given.get("max_wall_s")),
        _whole(window) or 0,
        given.get("no_progress") is True,
        given.get("stop_on_pass") is True,
    )


def _tick(payload: Mapping[str, Any]) -> int | None:
    tick = _whole(payload.get("tick"))
    return tick if tick is not None and 0 < tick <= _TICK_MAX else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _texts(value: object) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


LOOPS: Projection[Loops] = Projection("loops", "1", Loops, Loops(), evolve)
