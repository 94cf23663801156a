"""What people and programs are shown of a run."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec

from ledger.events.times import format_instant
from projections.remediation import words
from projections.remediation.enqueuing import MASTER_CONVERSATION
from projections.remediation.owner import actions
from projections.remediation.state import Noted, Progress, Prompt, Repair, Run


class Convergence(msgspec.Struct, frozen=True):
    """Whether the reviews of a step come to an end. `findings` is what each asked to be mended, oldest first;
    `shrinking` is None before there are two to compare."""

    step: str
    rounds: int
    findings: tuple[int, ...]
    shrinking: bool | None


def not_started() -> dict[str, Any]:
    return {"status": words.NOT_STARTED, "stage": words.IDLE, "error": None, "steps": [], "events": []}


def detail(run: Run) -> dict[str, Any]:
    """A run, ready for JSON."""
    if run.status == words.NOT_STARTED:
        return not_started()
    current = run.step
    return {
        "run_id": run.id,
        "task_id": run.id,
        "session_id": run.id,
        "owner": run.owner,
        "status": run.status,
        "stage": run.stage,
        "error": run.error,
        "blocked": None if run.block is None else msgspec.to_builtins(run.block) | {"at": _instant(run.block.at)},
        "current_step": None if current is None else current.step.id,
        "correction_round": 0 if current is None else current.correction_round,
        "master_conversation_id": f"{run.id}/{MASTER_CONVERSATION}",
        "master": run.master,
        "steps": [step_item(run, one) for one in run.steps],
        "self_repair": None if run.repair is None else repair_item(run.repair),
        "repairs": [repair_item(one) for one in run.repairs],
        "prompt": None if run.active_prompt is None else prompt_item(run, run.active_prompt),
        "events": [event_item(one) for one in run.events],
        "convergence": [msgspec.to_builtins(convergence(one)) for one in run.steps if one.reviews],
        "cost_usd": run.cost_usd,
        "turns_without_cost": run.cost_unknown,
        "lease": None
        if run.lease is None
        else {"runner": run.lease.runner, "expires_at": _instant(run.lease.expires_at)},
        "started_at": _instant(run.started_at),
        "ended_at": _instant(run.ended_at),
        "actions": list(actions(run)),
        "last_seq": run.last_seq,
    }


def step_item(run: Run, progress: Progress) -> dict[str, Any]:
    return {
        **msgspec.to_builtins(progress.step),
        "prompt": progress.prompt,
        "project": progress.project,
        "status": progress.status,
        "attempts": progress.attempts,
        "correction_round": progress.correction_round,
        "repairs": progress.repairs,
        "conversation_id": f"{run.id}/{progress.conversation}",
        "start_commit": progress.commit,
    }


def repair_item(repair: Repair) -> dict[str, Any]:
    times = {"started_at": _instant(repair.started_at), "finished_at": _instant(repair.finished_at)}
    return {**msgspec.to_builtins(repair), **times}


def prompt_item(run: Run, prompt: Prompt) -> dict[str, Any]:
    """A prompt with its reply: one exchange of the ping-pong."""
    times = {
        "enqueued_at": _instant(prompt.enqueued_at),
        "started_at": _instant(prompt.started_at),
        "finished_at": _instant(prompt.finished_at),
    }
    return {**msgspec.to_builtins(prompt), **times, "conversation_id": f"{run.id}/{prompt.conversation}"}


def event_item(noted: Noted) -> dict[str, Any]:
    return {
        "seq": noted.seq,
        "kind": noted.kind,
        "at": _instant(noted.at),
        "actor": noted.actor,
        "payload": noted.payload,
    }


def convergence(progress: Progress) -> Convergence:
    """A review that held no verdict says nothing about the work."""
    judged = [one for one in progress.reviews if one.decision != words.NO_VERDICT]
    findings = tuple(one.findings for one in judged)
    shrinking = None
    if len(findings) > 1:
        never_more = all(later <= earlier for earlier, later in pairwise(findings))
        shrinking = never_more and findings[-1] < findings[0]
    rounds = sum(one.decision == words.CORRECT for one in judged)
    return Convergence(progress.step.id, rounds, findings, shrinking)


def _instant(at: int | None) -> str | None:
    return format_instant(at) if at else None
