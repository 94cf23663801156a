"""What a page says of a loop: how it stands, its brakes and its rounds in words, before they are markup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from ledger.events.kinds import TERMINAL_STATES
from ledger.http import plots
from ledger.http.page_words import capital, duration
from ledger.http.plots import Dot
from projections.loop_reasons import Reason, sentence_of
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


def stands(loop: Json) -> tuple[str, str]:
    """(the class of its dot, how it stands in a sentence), of a loop as a list has it or its own page."""
    status = loop["task_status"]
    if status in TERMINAL_STATES:
        return status, f"{capital(status)} with its task."
    if loop["status"] == HALTED_STATUS:
        return "suspended", f"Halted: {sentence_of(_text(loop['halt_reason']))}"
    if loop["held_by"] is not None:
        return "suspended", f"Held by a brake: {loop['held_sentence']}"
    if loop["current_task"] is None:
        return "queued", "No task is set."
    at_work = loop["at_work"]
    if at_work is None:
        return "running", "Goes on at its next tick."
    role = f": {at_work['role']}" if at_work["role"] else ""
    return "running", f"Round {at_work['tick']} is at work{role}."


def brake_rows(brakes: Sequence[Json]) -> list[dict[str, Any]]:
    """With a `name`, how far each is as a `share` from 0 to 1, and that in words as `said`."""
    return [
        {
            **brake,
            "name": _BRAKES.get(brake["reason"], brake["reason"]),
            "share": 1.0 if brake["value"] >= brake["limit"] else round(brake["value"] / brake["limit"], 3),
            "said": _said(brake),
        }
        for brake in brakes
    ]


def _said(brake: Json) -> str:
    value, limit = brake["value"], brake["limit"]
    match brake["reason"]:
        case Reason.BUDGET_EXHAUSTED:
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
