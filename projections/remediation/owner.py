"""What an owner decides about a run, pure: the run in, facts out, or a refusal that says why.

The facts are appended together behind the last seq that was seen; the first opens the stream where the run is new.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ledger.events import kinds
from projections.remediation import enqueuing, facts, plan, prompts, words
from projections.remediation.facts import Fact
from projections.remediation.following import after
from projections.remediation.plan import Configuration, Problem, Step
from projections.remediation.state import Run

FEEDBACK_CHARS_MAX = 2_000


class Refusal(msgspec.Struct, frozen=True):
    """`conflict`: the plan or the wish contradicts what stands (409); else it is unusable (422). `problems` name the
    fields, the first of them first."""

    problems: tuple[Problem, ...]
    conflict: bool = False

    @property
    def detail(self) -> str:
        return "; ".join(f"{one.field}: {one.detail}" if one.field else one.detail for one in self.problems)


def start(
    run_id: str, owner: str, wanted: Any, configuration: Configuration, active: Run | None
) -> list[Fact] | Refusal:
    """A new run of the plan `wanted` (JSON). `active` is the run that is active now, if one is: BLOCKED counts."""
    steps, problems = plan.check_plan(wanted, configuration)
    if problems:
        return Refusal(tuple(problems))
    if active is not None and active.is_active:
        hint = "Resume it, or wait until it is completed."
        return Refusal((Problem("", f"one is running: run {active.id} is {active.status}", hint),), conflict=True)
    started = facts.run_started(run_id, owner, steps, configuration)
    run = after(Run(), [started])
    return [started, facts.result(kinds.WORKING, "the plan is reviewed"), enqueuing.plan_review(run)]


def resume(run: Run, by: str, wanted: Any = None) -> list[Fact] | Refusal:
    """Goes on after a block, with `wanted` (JSON) in place of what was told to the agents, where it is given."""
    if (refusal := _not_blocked(run, "resumed")) is not None:
        return refusal
    revised: Sequence[Step] | None = None
    if wanted is not None:
        revised, problems = plan.read_steps(wanted)
        if problems:
            return Refusal(tuple(problems))
        if problems := plan.rebased([one.step for one in run.steps], revised):
            return Refusal(tuple(problems), conflict=True)
    return _resumed(run, by, revised, [], None)


def approve(run: Run, by: str, feedback: str = "") -> list[Fact] | Refusal:
    """Grants what a blocked run asks its owner for, and goes on. It completes nothing by itself: the agent goes on,
    and the master judges."""
    if (refusal := _not_blocked(run, "approved")) is not None:
        return refusal
    if len(feedback) > FEEDBACK_CHARS_MAX:
        detail = f"has {len(feedback)} characters"
        return Refusal((Problem("feedback", detail, f"Send at most {FEEDBACK_CHARS_MAX}."),))
    step_id = None if run.block is None else run.block.step
    granted = feedback.strip() or _asked_for(run)
    return _resumed(run, by, None, [facts.owner_approved(step_id, granted, by)], granted)


def actions(run: Run) -> tuple[str, ...]:
    """What is open to the owner. The deciders refuse the rest."""
    return ("resume", "approve") if run.status == words.BLOCKED else ()


def _resumed(run: Run, by: str, revised: Sequence[Step] | None, first: list[Fact], granted: str | None) -> list[Fact]:
    block = run.block
    stage = words.AGENT if block is None or block.stage == words.SUPERVISOR else block.stage
    step_id = None if block is None else block.step
    why = run.error or ""
    decided = list(first)
    if run.repair is not None and run.repair.status in (words.RUNNING, words.NEEDS_USER):
        decided.append(facts.repair_resolved(run.repair.number, by))
    decided += facts.run_resumed(stage, step_id, by, revised)
    run = after(run, decided)
    note = "" if granted is None else prompts.quoted("The owner has approved", granted)
    progress = run.progress(step_id) or run.step
    if stage == words.PLAN_REVIEW:
        decided.append(enqueuing.plan_review(run, note=note))
    elif stage == words.FINAL_REVIEW or progress is None:
        decided.append(enqueuing.final_review(run, note=note))
    else:
        text = prompts.carry_on(progress, why, approved=granted)
        decided.append(enqueuing.work(run, progress, "resumed", text))
    return decided


def _asked_for(run: Run) -> str:
    repair = run.repair
    if repair is not None and repair.status == words.NEEDS_USER and repair.feedback:
        return repair.feedback
    return run.error or ""


def _not_blocked(run: Run, what: str) -> Refusal | None:
    if run.status == words.BLOCKED:
        return None
    detail = "no run was started" if run.status == words.NOT_STARTED else f"run {run.id} is {run.status}"
    return Refusal((Problem("", f"{detail}; only a BLOCKED run is {what}"),), conflict=True)
