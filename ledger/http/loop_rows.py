"""What a page says of a loop: how it stands, its brakes and its rounds in words, before they are markup."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from markupsafe import Markup

from ledger.events.kinds import TERMINAL_STATES
from ledger.events.times import parse_instant
from ledger.http import plots
from ledger.http.agent_text import plain
from ledger.http.page_words import capital, duration
from ledger.http.plots import Dot
from projections.loop_brakes import CLEARED_BY_A_RESUME, held_by
from projections.loop_reasons import Reason, sentence_of
from projections.loop_state import TICK_SKIPPED, Loop
from projections.loop_views import HALTED_STATUS

Json = Mapping[str, Any]

SCORES_DRAWN_MAX = 60
OUTCOMES = {
    "passed": ("Passed", "done"),
    "failing": ("Not passed", ""),
    "open": ("At work", "open"),
    "halted": ("Halted", "waiting"),
    "abandoned": ("Given up", ""),
}
_BRAKES = {
    Reason.MAX_ITERATIONS: "Rounds",
    Reason.BUDGET_EXHAUSTED: "Budget",
    Reason.WALL_TIME_EXHAUSTED: "Time at work",
    Reason.SCORE_PLATEAU: "Plateau",
    Reason.NO_PROGRESS: "No progress",
    Reason.PASSED: "Passed",
}
HELD: dict[str, str] = {
    Reason.MAX_ITERATIONS: "Held by a brake: it has had all its rounds.",
    Reason.BUDGET_EXHAUSTED: "Held by a brake: its budget is used up.",
    Reason.WALL_TIME_EXHAUSTED: "Held by a brake: its agents' time is used up.",
    Reason.SCORE_PLATEAU: "Held by a brake: its scores bring no gain any more.",
    Reason.NO_PROGRESS: "Held by a brake: two rounds in a row have changed nothing.",
    Reason.PASSED: "The task has passed. It waits for the next one.",
}
_LIMITS: dict[str, str] = {
    Reason.MAX_ITERATIONS: "brakes.max_iterations",
    Reason.BUDGET_EXHAUSTED: "brakes.max_budget_usd",
    Reason.WALL_TIME_EXHAUSTED: "brakes.max_wall_s",
}
BROKEN: dict[str, str] = {
    Reason.GATE_SUBPROCESS_FAILED: "gate.command",
    Reason.CONTEXT_PROBE_FAILED: "context_probe.command",
}
_PASSES_BY = (Reason.LOCKED, Reason.INTERRUPTED, Reason.SUPERSEDED)  # skips that say nothing of the next tick
_INTERVAL_S_MAX = 10**9
_TICKS_MISSED, _TICK_LATE_S, _AGENT_S_MAX = 2, 300, 2 * 3600


class Skip(msgspec.Struct, frozen=True):
    """Why a tick did nothing; `at` in ns."""

    reason: str
    at: int


def last_skip(loop: Loop) -> Skip | None:
    """The newest tick, if it was skipped, and since then no round was taken up and no setting changed."""
    newest = next(loop.log.falling(), None)
    begun = -1 if loop.open_round is None else max(loop.open_round.starts, default=-1)
    if newest is None or newest.kind != TICK_SKIPPED or newest.seq < max(begun, loop.configured_seq):
        return None
    return Skip(newest.said, newest.at)


def interval_s(loop: Loop) -> float | None:
    """From one tick to the next by its loop.json, whoever wrote that."""
    schedule = loop.config.get("schedule")
    seconds = schedule.get("interval_seconds") if isinstance(schedule, dict) else None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < _INTERVAL_S_MAX:
        return None
    return seconds


def why_it_stands(loop: Loop) -> tuple[str, str, int] | None:
    """(reason, that in words, since when in ns) of a loop that no tick moves on until somebody has done something."""
    if loop.halt is not None:
        return loop.halt.reason, f"{sentence_of(loop.halt.reason)} {loop.halt.detail}".strip(), loop.halt.at
    held, skip = held_by(loop), last_skip(loop)
    if held is None and skip is not None and skip.reason in (Reason.BUDGET_EXHAUSTED, *BROKEN):
        held = skip.reason  # what its agents cost may not have been read
    if held is None:
        return None
    return held, HELD.get(held) or sentence_of(held), loop.last_tick_at or loop.opened_at


def stands(loop: Json) -> tuple[str, str]:
    """(the class of its dot, how it stands in a sentence), of a loop as a list has it or its own page."""
    status, skip = loop["task_status"], loop["last_skip"]
    if status in TERMINAL_STATES:
        return status, f"{capital(status)} with its task."
    if loop["status"] == HALTED_STATUS:
        return "suspended", f"Halted: {sentence_of(_text(loop['halt_reason']))}"
    if loop["held_by"] is not None:
        return _dot_of_held(loop["held_by"]), HELD.get(loop["held_by"], sentence_of(loop["held_by"]))
    if loop["current_task"] is None:
        return "queued", "No task is set."
    at_work = loop["at_work"]
    if at_work is not None:
        role = f": {at_work['role']}" if at_work["role"] else ""
        return "running", f"Round {at_work['tick']} is at work{role}."
    if skip is not None and skip["reason"] != Reason.NO_CURRENT_TASK:
        dot = "running" if skip["reason"] in _PASSES_BY else "suspended"
        return dot, f"Its last tick was skipped: {sentence_of(skip['reason'])}"
    return "running", "Goes on at its next tick."


def _dot_of_held(reason: str) -> str:
    return "done" if reason == Reason.PASSED else "suspended"


def overdue(loop: Json, now: int) -> str | None:
    """What to say where its runner seems to be gone; None where it is not due, or nobody waits for it."""
    interval, heard_at = loop["interval_s"], parse_instant(loop["heard_at"])
    goes_on = loop["status"] != HALTED_STATUS and loop["held_by"] is None and loop["current_task"] is not None
    if loop["task_status"] in TERMINAL_STATES or not goes_on or interval is None or heard_at is None:
        return None
    grace = _AGENT_S_MAX if loop["at_work"] else _TICK_LATE_S
    silent = (now - heard_at) / 1e9
    if silent <= _TICKS_MISSED * interval + grace:
        return None
    return f"Nothing came from its runner for {duration(silent)}, and a tick is due every {duration(interval)}."


def next_steps(loop: Json, now: int) -> list[tuple[str, str | None]]:
    """What its owner can do now, each as a sentence and the command for it, if it takes one."""
    if loop["task_status"] in TERMINAL_STATES:
        return []
    name = shlex.quote(plain(loop["name"]))
    where = f" in {loop['cwd']}" if loop["cwd"] else ""
    where += f" on {loop['host']}" if loop["host"] else ""
    task = f'ledgerd loop task {name} "What is to be done"'
    run = f"ledgerd loop run --mode daemon --loop {name}"
    skipped = (loop["last_skip"] or {}).get("reason")
    held = loop["held_by"] or (skipped if skipped in BROKEN else None)
    steps: list[tuple[str, str | None]] = []
    if loop["status"] == HALTED_STATUS and loop["requests"]:
        steps.append((f"A runner in daemon mode ends at a halt. If no other runs it, start one{where}:", run))
    elif loop["status"] == HALTED_STATUS:
        steps.append(("Once what halted it is settled, resume it: its next tick begins a new round.", None))
    elif loop["current_task"] is None:
        steps.append((f"Set a task{where}:", task))
    elif held == Reason.PASSED:
        steps.append((f"Set the next task{where}, or resume it to have this one done once more:", task))
    elif held in CLEARED_BY_A_RESUME:
        steps.append((f"Resume it, and this brake counts anew; or give it another task{where}:", task))
    elif held in _LIMITS:
        steps.append((f"Raise {_LIMITS[held]} in .ledgerd/loops/{loop['name']}/loop.json{where}.", None))
    elif held in BROKEN:
        steps.append((f"Mend {BROKEN[held]} in .ledgerd/loops/{loop['name']}/loop.json{where}.", None))
    late = overdue(loop, now)
    if late is not None:
        steps.append((f"{late} Start it{where}:", run))
    return steps


def brake_rows(brakes: Sequence[Json], cost_usd: float | None) -> list[dict[str, Any]]:
    """With a `name`, how far each is as a `share` from 0 to 1, and that in words as `said`. `cost_usd` is what the
    agents said they cost; None where none named a cost, so that no budget can hold."""
    return [
        {
            **brake,
            "name": _BRAKES.get(brake["reason"], brake["reason"]),
            "share": 1.0 if brake["value"] >= brake["limit"] else round(brake["value"] / brake["limit"], 3),
            "said": _said(brake, cost_usd),
        }
        for brake in brakes
    ]


def _said(brake: Json, cost_usd: float | None) -> str:
    value, limit = brake["value"], brake["limit"]
    match brake["reason"]:
        case Reason.BUDGET_EXHAUSTED:
            if cost_usd is None:
                return f"no cost reported; limit $ {limit:,.2f}"
            return f"$ {value:,.2f} of $ {limit:,.2f}, as reported"
        case Reason.WALL_TIME_EXHAUSTED:
            return f"{duration(value)} of {duration(limit)}"
        case Reason.SCORE_PLATEAU:
            return f"{value:g} of {limit:g} scores without a gain"
        case Reason.NO_PROGRESS:
            return f"{value:g} of {limit:g} rounds without a change"
        case Reason.PASSED:
            return "the task has passed" if value else "stops once the task has passed"
    return f"{value:g} of {limit:g} {brake['unit']}"


def round_rows(rounds: Sequence[Json]) -> list[dict[str, Any]]:
    """The rounds, the newest first, with `head`, `tone`, `at`, and the `task` only where the round before had
    another."""
    rows = []
    for place, one in enumerate(rounds):
        said, tone = OUTCOMES.get(one["outcome"], (one["outcome"], ""))
        verdict, halt = one["verdict"], one["halt"]
        score = None if verdict is None else verdict["score"]
        before = rounds[place + 1]["task"] if place + 1 < len(rounds) else ""
        rows.append(
            {
                **one,
                "head": said if score is None else f"{said}, score {score:g}",
                "tone": tone,
                "at": one["completed_at"] or (halt["at"] if halt else None) or one["started_at"],
                "task": one["task"] if one["task"] != before else "",
            }
        )
    return rows


def scores_plot(scores: Sequence[Json]) -> tuple[str, Markup] | None:
    """What is to be said of the scores, and the newest of them drawn; None where the verifier has given none."""
    there = [one["score"] for one in scores if one["score"] is not None]
    if not there:
        return None
    shown = scores[-SCORES_DRAWN_MAX:]
    passes = sum(one["pass"] for one in scores)
    parts = [f"The last is {there[-1]:g}, the best {max(there):g}.", f"{passes:,} of {len(scores):,} rounds passed."]
    if len(there) < len(scores):
        parts.append(f"{len(scores) - len(there):,} had no score.")
    if len(shown) < len(scores):
        parts.append(f"The newest {len(shown)} are drawn.")
    dots = [Dot(one["score"], "passed" if one["pass"] else "failing", _point(one)) for one in shown]
    labels = [f"round {one['tick']}" for one in shown]
    note = " ".join(parts)
    return note, plots.track("scores", "Scores by round", note, labels, dots, lambda value: f"{value:.4g}")


def _point(one: Json) -> str:
    score = "no score" if one["score"] is None else f"{one['score']:g}"
    return f"Round {one['tick']}: {score}, {'passed' if one['pass'] else 'not passed'}"


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
