"""What is shown of a loop: on its page and in a terminal, in a list, and in the two files beside its loop.json."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from ledger.events.times import format_instant
from projections.loop_brakes import Brake, brakes_of, cost_usd, held_by
from projections.loop_reasons import sentence_of
from projections.loop_state import (
    HALTED,
    RESUMED,
    ROLE_FINISHED,
    ROLES,
    TASK_SET,
    TICK_COMPLETED,
    TICK_SKIPPED,
    Halt,
    Logged,
    Loop,
    RoleRun,
    Round,
    Verdict,
)
from projections.usage import usage_item

RUNNING, HALTED_STATUS = "running", "halted"
ROUNDS_SHOWN = 100
SCHEMA_VERSION = 1
_SAID_CHARS_LOGGED = 200
_WORDS = {TICK_SKIPPED: "SKIP", HALTED: "HALT", RESUMED: "RESUME", TASK_SET: "TASK", ROLE_FINISHED: "FAILED"}


def status_of(loop: Loop) -> str:
    return RUNNING if loop.halt is None else HALTED_STATUS


def loop_item(loop: Loop) -> dict[str, Any]:
    """A loop as a list shows it."""
    held = held_by(loop)
    return {
        "name": loop.name,
        "task_id": loop.task_id,
        "session_id": loop.session_id,
        "status": status_of(loop),
        "halt_reason": None if loop.halt is None else loop.halt.halt_reason,
        "held_by": held,
        "held_sentence": None if held is None else sentence_of(held),
        "iteration_count": loop.iteration_count,
        "last_tick_at": _time(loop.last_tick_at),
        "last_verdict": verdict_item(loop.last_verdict),
        "current_task": loop.current_task,
        "cost_usd": cost_usd(loop),
    }


def loop_view(loop: Loop, *, rounds: int = ROUNDS_SHOWN) -> dict[str, Any]:
    """All of a loop, with its newest `rounds` rounds, the newest first. `scores` is the whole series:
    `[{tick, score, pass}]`."""
    newest = sorted(loop.rounds.values(), key=lambda one: -one.tick)
    numbers = _iterations(loop)
    return {
        **loop_item(loop),
        "description": loop.config.get("description") or "",
        "config": loop.config,
        "opened_at": _time(loop.opened_at),
        "resumed_count": len(loop.resumes),
        "halt": None if loop.halt is None else _halt_item(loop.halt),
        "brakes": [_brake_item(brake) for brake in brakes_of(loop)],
        "scores": [
            {"tick": one.tick, "score": one.verdict.score, "pass": one.verdict.passed}
            for one in loop.completed
            if one.verdict is not None
        ],
        "score_history": loop.score_history,
        "rounds": [_round_item(loop, one, numbers.get(one.tick)) for one in newest[:rounds]],
        "rounds_left_out": max(0, len(newest) - rounds),
        "usage": usage_item(loop.usage.whole),
        "agent_seconds": round(loop.agent_seconds, 3),
        "worktree_branch": loop.worktree_branch,
        "worktree_path": loop.worktree_path,
        "log": log_lines(loop),
    }


def state_item(loop: Loop) -> dict[str, Any]:
    """What `.state.loop` holds. No skip changes it."""
    return {
        "schema_version": SCHEMA_VERSION,
        "name": loop.name,
        "status": status_of(loop),
        "halt_reason": None if loop.halt is None else loop.halt.halt_reason,
        "iteration_count": loop.iteration_count,
        "resumed_count": len(loop.resumes),
        "last_tick_at": _time(loop.last_tick_at),
        "last_verdict": verdict_item(loop.last_verdict),
        "score_history": loop.score_history,
        "current_task": loop.current_task,
        "worktree_branch": loop.worktree_branch,
        "worktree_path": loop.worktree_path,
    }


def log_lines(loop: Loop) -> list[str]:
    """The log, oldest first: `TICK pass=True score=0.9 iter=1`. Skips for one reason in a row are one line."""
    numbers = _iterations(loop)
    lines: list[str] = []
    for (kind, _), alike in groupby(loop.log, key=_repeats):
        entries = list(alike)
        if kind == TICK_SKIPPED and len(entries) > 1:
            lines.append(f"{log_line(loop, entries[0], numbers)} x{len(entries)}")
        else:
            lines += [log_line(loop, entry, numbers) for entry in entries]
    return lines


def log_line(loop: Loop, entry: Logged, numbers: dict[int, int]) -> str:
    if entry.kind == TICK_COMPLETED:
        verdict = loop.rounds[entry.tick].verdict
        passed, score = (None, None) if verdict is None else (verdict.passed, verdict.score)
        return tick_line(passed, score, numbers.get(entry.tick, 0))
    said = " ".join(entry.said.split())[:_SAID_CHARS_LOGGED]
    word = _WORDS[entry.kind]
    return f"{word} {said}".rstrip()


def tick_line(passed: bool | None, score: float | None, iteration: int) -> str:
    shown = "None" if score is None else f"{score:g}"
    return f"TICK pass={passed} score={shown} iter={iteration}"


def verdict_item(verdict: Verdict | None) -> dict[str, Any] | None:
    if verdict is None:
        return None
    return {"pass": verdict.passed, "score": verdict.score, "reasons": list(verdict.reasons)}


def _repeats(entry: Logged) -> tuple[str, str]:
    return entry.kind, entry.said


def _iterations(loop: Loop) -> dict[int, int]:
    """tick → which iteration it was, in the order in which they were completed."""
    completed = sorted(loop.completed, key=lambda one: one.completed_seq)
    return {one.tick: n for n, one in enumerate(completed, 1)}


def _round_item(loop: Loop, one: Round, iteration: int | None) -> dict[str, Any]:
    halt = _halt_of(loop, one)
    last_seq = max(one.completed_seq, *one.starts, -1 if halt is None else halt.seq)
    return {
        "tick": one.tick,
        "seq": last_seq if last_seq >= 0 else None,
        "iteration": iteration,
        "outcome": _outcome(loop, one),
        "task": one.task,
        "started_at": _time(one.started_at or None),
        "completed_at": _time(one.completed_at or None),
        "changed": one.changed,
        "verdict": verdict_item(one.verdict),
        "halt": None if halt is None else _halt_item(halt),
        "roles": [_role_item(one.roles[role]) for role in ROLES if role in one.roles],
    }


def _outcome(loop: Loop, one: Round) -> str:
    """`passed`, `failing`, `open`, `halted`, or `abandoned`: begun, and given up when the loop was halted."""
    if one.completed:
        return "passed" if one.verdict is not None and one.verdict.passed else "failing"
    if _halt_of(loop, one) is not None:
        return "halted"
    return "open" if loop.open_round is one else "abandoned"


def _halt_of(loop: Loop, one: Round) -> Halt | None:
    return next((halt for halt in loop.halts.values() if halt.tick == one.tick), None)


def _role_item(role: RoleRun) -> dict[str, Any]:
    return {
        "role": role.role,
        "exit_code": role.exit_code,
        "artifact": role.artifact,
        "seconds": role.seconds,
        "problem": role.problem,
        "at": _time(role.at),
    }


def _halt_item(halt: Halt) -> dict[str, Any]:
    return {
        "reason": halt.reason,
        "halt_reason": halt.halt_reason,
        "sentence": sentence_of(halt.reason),
        "detail": halt.detail,
        "files": list(halt.files),
        "tick": halt.tick,
        "at": _time(halt.at),
    }


def _brake_item(brake: Brake) -> dict[str, Any]:
    return {
        "reason": str(brake.reason),
        "value": brake.value,
        "limit": brake.limit,
        "unit": brake.unit,
        "holds": brake.holds,
        "sentence": brake.reason.sentence,
    }


def _time(ns: int | None) -> str | None:
    return None if ns is None else format_instant(ns)
