"""The events of a run's stream, and the shape of each: the one place that knows their payloads.

A decision is a list of facts that are appended together, behind the last seq that the decider has seen. What a runner
decided names it (`runner`), so that the events of two runners are never equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ledger.events import kinds
from projections.remediation import words
from projections.remediation.plan import Configuration, Rules, Step
from projections.remediation.state import Prompt, Reply

SUMMARY_CHARS_MAX = 500


class Fact(msgspec.Struct, frozen=True):
    """What happened, not yet where it stands."""

    kind: str
    payload: dict[str, Any]


def run_started(run_id: str, owner: str, steps: Sequence[Step], configuration: Configuration) -> Fact:
    """The rules of the run are those that stand when it starts; its projects are those of each step."""
    return Fact(
        words.RUN_STARTED,
        {
            "run_id": run_id,
            "owner": owner,
            "steps": msgspec.to_builtins(steps),
            "projects": msgspec.to_builtins(configuration.projects),
            "master": configuration.master,
            "tool_project": configuration.tool_project,
            "rules": msgspec.to_builtins(configuration.rules),
        },
    )


def prompt_enqueued(prompt: Prompt) -> Fact:
    """{queue_id, conversation, project, role, stage, step, purpose, attempt, text}"""
    return Fact(
        words.PROMPT_ENQUEUED,
        {
            "queue_id": prompt.queue_id,
            "conversation": prompt.conversation,
            "project": prompt.project,
            "role": prompt.role,
            "stage": prompt.stage,
            "step": prompt.step,
            "purpose": prompt.purpose,
            "attempt": prompt.attempt,
            "text": prompt.text,
        },
    )


def turn_started(queue_id: str, commit: str | None) -> Fact:
    """`commit` is where the project's repository stood."""
    return Fact(words.TURN_STARTED, {"queue_id": queue_id, "commit": commit})


def turn_finished(queue_id: str, reply: Reply) -> Fact:
    """{queue_id, status, content, error, trouble, resume, cost_usd, exit_code}"""
    return Fact(words.TURN_FINISHED, {"queue_id": queue_id, **msgspec.to_builtins(reply)})


def verdict(queue_id: str, step: str | None, decision: str, feedback: str, findings: int, reason: str = "") -> Fact:
    """`decision` is none where the reply held no verdict; `reason` says why."""
    payload = {"queue_id": queue_id, "step": step, "decision": decision, "feedback": feedback, "findings": findings}
    return Fact(words.VERDICT, payload | ({"reason": reason} if reason else {}))


def run_blocked(
    stage: str, step: str | None, cause: str, reason: str, *, interrupted: bool, repair: str
) -> list[Fact]:
    """`interrupted`: a worker was interrupted during a review, so that nothing but the review is missing. `repair`
    says whether this block started a repair; events of older versions do not."""
    payload = {
        "stage": stage,
        "step": step,
        "cause": cause,
        "reason": reason,
        "review_interrupted": interrupted,
        "repair": repair,
    }
    return [Fact(words.RUN_BLOCKED, payload), result(kinds.SUSPENDED, reason)]


def step_approved(queue_id: str, step: str, feedback: str) -> Fact:
    return Fact(words.STEP_APPROVED, {"queue_id": queue_id, "step": step, "feedback": feedback})


def review_restarted(queue_id: str, step: str | None, number: int) -> Fact:
    """`queue_id` is the review that was interrupted, `number` counts the restarts of this attempt."""
    return Fact(words.REVIEW_RESTARTED, {"queue_id": queue_id, "step": step, "number": number})


def repair_started(number: int, step: str | None, stage: str, reason: str, *, catchup: bool) -> Fact:
    kind = words.REPAIR_CATCHUP if catchup else words.REPAIR_BEGUN
    return Fact(kind, {"repair": number, "step": step, "stage": stage, "reason": reason})


def repair_resumed(number: int, step: str | None, stage: str, feedback: str, addendum: str) -> list[Fact]:
    payload = {"repair": number, "step": step, "stage": stage, "feedback": feedback, "prompt_addendum": addendum}
    return [Fact(words.REPAIR_RESUMED, payload), result(kinds.WORKING, "repaired: the run goes on")]


def repair_needs_user(number: int, step: str | None, feedback: str) -> list[Fact]:
    payload = {"repair": number, "step": step, "feedback": feedback}
    return [Fact(words.REPAIR_NEEDS_USER, payload), result(kinds.SUSPENDED, f"needs you: {feedback}")]


def repair_resolved(number: int, by: str) -> Fact:
    return Fact(words.REPAIR_RESOLVED, {"repair": number, "by": by})


def owner_approved(step: str | None, feedback: str, by: str) -> Fact:
    return Fact(words.OWNER_APPROVED, {"step": step, "feedback": feedback, "by": by})


def run_resumed(stage: str, step: str | None, by: str, revised: Sequence[Step] | None) -> list[Fact]:
    payload: dict[str, Any] = {"stage": stage, "step": step, "by": by, "plan_rebased": revised is not None}
    if revised is not None:
        payload["steps"] = msgspec.to_builtins(revised)
    return [Fact(words.RUN_RESUMED, payload), result(kinds.WORKING, "resumed by the owner")]


def run_completed(steps: int) -> list[Fact]:
    plural = "step" if steps == 1 else "steps"
    return [Fact(words.RUN_COMPLETED, {"steps": steps}), result(kinds.DONE, f"{steps} {plural} approved")]


def lease_taken(runner: str, expires_at: int) -> Fact:
    """Taken or renewed; `expires_at` in ns."""
    return Fact(words.LEASE_TAKEN, {"runner": runner, "expires_at": expires_at})


def lease_released(runner: str) -> Fact:
    return Fact(words.LEASE_RELEASED, {"runner": runner})


def configured(configuration: Configuration) -> Fact:
    """On STREAM."""
    return Fact(words.CONFIGURED, msgspec.to_builtins(configuration))


def configuration_of(payload: dict[str, Any]) -> Configuration:
    """What `configured` says. Gives an empty one, which has no master, for a payload that is none."""
    try:
        return msgspec.convert(payload, Configuration)
    except msgspec.ValidationError:
        return Configuration()


def rules_of(payload: Any) -> Rules:
    try:
        return msgspec.convert(payload, Rules)
    except msgspec.ValidationError:
        return Rules()


def result(state: str, summary: str) -> Fact:
    """A state push of the run's session, which its task follows."""
    short = summary if len(summary) <= SUMMARY_CHARS_MAX else summary[: SUMMARY_CHARS_MAX - 1] + "…"
    return Fact(kinds.RESULT, {"state": state, "summary": short})
