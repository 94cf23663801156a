"""A run as people read it: where its plan stands, and what was said to whom, with what reply and what verdict."""

from __future__ import annotations

from typing import Any

import msgspec

from ledger.events.times import format_instant
from projections.remediation import words
from projections.remediation.enqueuing import MASTER_CONVERSATION
from projections.remediation.owner import actions
from projections.remediation.state import Noted, Progress, Prompt, Review, Run
from projections.remediation.views import convergence

ROWS_SHOWN = 60

_OF_EXCHANGES = frozenset({words.TURN_STARTED, words.TURN_FINISHED, words.VERDICT})


def waits_for(run: Run) -> dict[str, Any] | None:
    """What a run waits for that only its owner can give: `{text, since, step}`. None while it goes on, or is
    repaired."""
    if run.status != words.BLOCKED or run.block is None:
        return None
    repair, text, since = run.repair, run.block.reason, run.block.at
    if repair is not None and repair.status == words.RUNNING:
        return None
    if repair is not None and repair.status == words.NEEDS_USER and repair.started_at >= run.block.at:
        text, since = repair.feedback or text, repair.finished_at or since
    return {"text": text, "since": format_instant(since), "step": run.block.step}


def page(run: Run, *, before: int | None = None, limit: int = ROWS_SHOWN) -> dict[str, Any]:
    """The run without its long list of events; of its story the newest `limit` rows below the seq `before`."""
    rows, older = story(run, before=before, limit=limit)
    return {
        "run_id": run.id,
        "owner": run.owner,
        "status": run.status,
        "stage": run.stage,
        "error": run.error,
        "blocked_at": None if run.block is None else format_instant(run.block.at),
        "waits_for": waits_for(run),
        "current": run.current + 1,
        "master": run.master,
        "tool_project": run.tool_project,
        "steps": [step_told(number, one) for number, one in enumerate(run.steps, 1)],
        "repairs": [
            {
                **msgspec.to_builtins(one),
                "started_at": _instant(one.started_at),
                "finished_at": _instant(one.finished_at),
            }
            for one in run.repairs
        ],
        "plan_reviews": len(run.plan_reviews),
        "runner": None if run.lease is None else run.lease.runner,
        "cost_usd": run.cost_usd,
        "turns": sum(prompt.reply is not None for prompt in run.prompts.values()),
        "turns_without_cost": run.cost_unknown,
        "started_at": _instant(run.started_at),
        "ended_at": _instant(run.ended_at),
        "actions": list(actions(run)),
        "rows": rows,
        "older": older,
    }


def step_told(number: int, progress: Progress) -> dict[str, Any]:
    step, told = progress.step, convergence(progress)
    return {
        "number": number,
        "id": step.id,
        "title": step.title,
        "summary": step.summary,
        "phase": step.phase_label or step.phase,
        "risk": step.risk,
        "project": progress.project,
        "prompt": progress.prompt,
        "status": progress.status,
        "attempts": progress.attempts,
        "rounds": told.rounds,
        "findings": list(told.findings),
        "shrinking": told.shrinking,
        "repairs": progress.repairs,
    }


def plan(run: Run) -> list[dict[str, Any]]:
    """The plan as it is now, in the form in which a resume takes it."""
    return [{**msgspec.to_builtins(one.step), "prompt": one.prompt} for one in run.steps]


def story(run: Run, *, before: int | None = None, limit: int = ROWS_SHOWN) -> tuple[list[dict[str, Any]], int | None]:
    """Rows in seq order, and what to give as `before` for those that are older; None where there are none. A prompt
    with its reply and verdict is one row, at the place of the prompt, with a `queue_id`; any other has a `kind`."""
    numbers = {one.step.id: number for number, one in enumerate(run.steps, 1)}
    verdicts = {one.queue_id: one for one in _reviews(run)}
    rows: list[dict[str, Any]] = []
    told: set[str] = set()
    for noted in run.events:
        if noted.kind == words.PROMPT_ENQUEUED:
            queue_id = str(noted.payload.get("queue_id"))
            prompt = run.prompts.get(queue_id)
            if prompt is None or queue_id in told:  # enqueued a second time: it changed nothing
                continue
            told.add(queue_id)
            rows.append(_exchange(run, noted, prompt, verdicts.get(queue_id), numbers))
        elif noted.kind not in _OF_EXCHANGES:
            rows.append(_milestone(run, noted, numbers))
    shown = [row for row in rows if before is None or row["seq"] < before]
    return shown[-limit:], shown[-limit]["seq"] if len(shown) > limit else None


def exchange(run: Run, queue_id: str) -> dict[str, Any] | None:
    """One row of the story by its prompt."""
    return next((row for row in story(run, limit=len(run.events) + 1)[0] if row.get("queue_id") == queue_id), None)


def _reviews(run: Run) -> list[Review]:
    return [*run.plan_reviews, *(review for one in run.steps for review in one.reviews)]


def _exchange(
    run: Run, noted: Noted, prompt: Prompt, verdict: Review | None, numbers: dict[str, int]
) -> dict[str, Any]:
    return {
        **_place(run, noted, prompt.step, numbers),
        "queue_id": prompt.queue_id,
        "role": prompt.role,
        "project": prompt.project,
        "conversation_id": f"{run.id}/{prompt.conversation or MASTER_CONVERSATION}",
        "stage": prompt.stage,
        "purpose": prompt.purpose,
        "attempt": prompt.attempt,
        "text": prompt.text,
        "started_at": _instant(prompt.started_at),
        "finished_at": _instant(prompt.finished_at),
        "reply": None if prompt.reply is None else msgspec.to_builtins(prompt.reply),
        "late": prompt.late,
        "verdict": None
        if verdict is None
        else {name: getattr(verdict, name) for name in ("decision", "feedback", "findings", "reason")},
        "active": run.active == prompt.queue_id,
    }


def _milestone(run: Run, noted: Noted, numbers: dict[str, int]) -> dict[str, Any]:
    step = noted.payload.get("step")
    return {
        **_place(run, noted, step if isinstance(step, str) else None, numbers),
        "kind": noted.kind,
        "payload": noted.payload,
    }


def _place(run: Run, noted: Noted, step_id: str | None, numbers: dict[str, int]) -> dict[str, Any]:
    progress = run.progress(step_id)
    return {
        "seq": noted.seq,
        "at": _instant(noted.at),
        "actor": noted.actor,
        "step": step_id,
        "step_number": None if progress is None else numbers[progress.step.id],
        "step_title": None if progress is None else progress.step.title,
    }


def _instant(at: int | None) -> str | None:
    return format_instant(at) if at else None
