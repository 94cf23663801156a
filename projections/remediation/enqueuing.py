"""The prompts of a run as facts: which conversation, in which project, with which words."""

from __future__ import annotations

from projections.remediation import prompts, words
from projections.remediation.facts import Fact, prompt_enqueued
from projections.remediation.state import Progress, Prompt, Run

MASTER_CONVERSATION = "master"


def plan_review(run: Run, *, restarted: bool = False, note: str = "") -> Fact:
    text = prompts.plan_review(run, restarted=restarted, note=note)
    return _to_master(run, words.PLAN_REVIEW, "review_restarted" if restarted else "plan_review", text)


def final_review(run: Run, *, restarted: bool = False, note: str = "") -> Fact:
    text = prompts.final_review(run, restarted=restarted, note=note)
    return _to_master(run, words.FINAL_REVIEW, "review_restarted" if restarted else "final_review", text)


def review(run: Run, progress: Progress, report: str, diff: str, *, restarted: bool = False) -> Fact:
    text = prompts.review(run, progress, report, diff, restarted=restarted)
    return _to_master(run, words.SUPERVISOR, "review_restarted" if restarted else "review", text, progress)


def work(run: Run, progress: Progress, purpose: str, text: str) -> Fact:
    """Sends an agent to a step: one attempt more."""
    return prompt_enqueued(
        Prompt(
            run.next_queue_id,
            progress.conversation,
            progress.project,
            words.WORKER,
            words.AGENT,
            purpose,
            text,
            progress.step.id,
            progress.attempts + 1,
        )
    )


def ask_again(run: Run, prompt: Prompt, why: str) -> Fact:
    text = prompts.ask_again(run, why, prompt.text, prompt.stage)
    progress = run.progress(prompt.step)
    if prompt.role == words.WORKER and progress is not None:
        return work(run, progress, "ask_again", text)
    return _to_master(run, prompt.stage, "ask_again", text, progress)


def repair(run: Run, step_id: str | None, stage: str, reason: str, project: str) -> Fact:
    number = len(run.repairs) + 1
    text = prompts.repair(run, run.progress(step_id), stage, reason)
    return prompt_enqueued(
        Prompt(run.next_queue_id, f"repair-{number}", project, words.REPAIR, stage, "repair", text, step_id)
    )


def _to_master(run: Run, stage: str, purpose: str, text: str, progress: Progress | None = None) -> Fact:
    return prompt_enqueued(
        Prompt(
            run.next_queue_id,
            MASTER_CONVERSATION,
            run.master,
            words.MASTER,
            stage,
            purpose,
            text,
            None if progress is None else progress.step.id,
            0 if progress is None else progress.attempts,
        )
    )
