"""The state machine of a run, pure: what is to be done next, and where a reply leads.

Nothing here is remembered: each answer is made from the run as it stands. What is decided is appended behind the last
event that the decider saw, so of two deciders one moves the run and the other decides again on what it finds.
"""

from __future__ import annotations

import enum

from ledger.daemons.remediation import verdicts
from ledger.daemons.remediation.blocking import TROUBLES, block, needs_catch_up, repaired, report_of
from projections.remediation import enqueuing, facts, prompts, words
from projections.remediation.facts import Fact
from projections.remediation.following import after
from projections.remediation.state import Progress, Prompt, Reply, Run

# What a tick came to
PROCESSED = "processed"
REPAIR_PROCESSED = "self_repair_processed"
REPAIR_RECOVERED = "self_repair_recovered"
BLOCKED = "blocked"
IDLE = "idle"
WAITING = "waiting"

MOVED = frozenset({PROCESSED, REPAIR_PROCESSED, REPAIR_RECOVERED, BLOCKED})


class Next(enum.Enum):
    NOTHING = "no run is active"
    WAIT = "another runner has it, or it stands until its owner decides"
    CATCH_UP = "an older version left it blocked without a repair"
    START_TURN = "the active prompt has not been given to an agent"
    TURN_LOST = "an agent was started, and whoever started it is gone"
    MOVE = "the active prompt is answered"
    STUCK = "it runs, and nothing is to be answered"


def next_for(run: Run, runner: str, now: int, tool_project: str | None) -> Next:
    """What `runner` is to do, which has no agent at work; `now` in ns."""
    if not run.is_active:
        return Next.NOTHING
    if held_by_another(run, runner, now):
        return Next.WAIT
    prompt = run.active_prompt
    if prompt is None:
        if run.status == words.BLOCKED:
            return Next.CATCH_UP if needs_catch_up(run, tool_project) else Next.WAIT
        return Next.STUCK
    if prompt.reply is not None:
        return Next.MOVE
    return Next.START_TURN if prompt.started_at is None else Next.TURN_LOST


def held_by_another(run: Run, runner: str, now: int) -> bool:
    return run.lease is not None and run.lease.runner != runner and run.lease.expires_at > now


def lost(prompt: Prompt) -> Fact:
    error = f"the runner {prompt.runner or '?'} ended while the {prompt.role} was at work"
    return facts.turn_finished(prompt.queue_id, Reply(words.INTERRUPTED, error=error))


def move(run: Run, tool_project: str | None, diff: str) -> tuple[str, list[Fact]]:
    """Where the reply to the active prompt leads: the tick's result, and the facts. `diff` is what was changed in the
    step's project since the step began."""
    prompt = run.active_prompt
    if prompt is None or prompt.reply is None:
        raise ValueError("the active prompt is not answered")
    reply = prompt.reply
    if prompt.role == words.REPAIR:
        return REPAIR_PROCESSED, repaired(run, reply, diff)
    if reply.status == words.INTERRUPTED:
        return PROCESSED, _interrupted(run, prompt, reply, tool_project, diff)
    if reply.status != words.DONE:
        reason = f"the {prompt.role} failed: {reply.error or reply.status}"
        return PROCESSED, block(run, words.BY_FAILURE, reason, tool_project, so_far=[])
    if reply.trouble:
        return PROCESSED, _asked_again(run, prompt, f"it {TROUBLES.get(reply.trouble, reply.trouble)}", tool_project)
    match prompt.stage:
        case words.AGENT:
            return PROCESSED, [enqueuing.review(run, _progress(run, prompt), reply.content, diff)]
        case words.FINAL_REVIEW:
            return PROCESSED, facts.run_completed(len(run.steps))
    return PROCESSED, _judged(run, prompt, reply, tool_project)


def crashed(run: Run, tool_project: str | None, error: str) -> list[Fact]:
    """A crash inside a tick: the run is blocked with the exception's text; a repair that was under way has failed."""
    prompt = run.active_prompt
    open_turn = prompt is not None and prompt.started_at is not None and prompt.reply is None
    ended = []
    if prompt is not None and open_turn:
        ended = [facts.turn_finished(prompt.queue_id, Reply(words.INTERRUPTED, error=error))]
    if run.status == words.BLOCKED:
        repair = run.repair
        if repair is None or repair.status != words.RUNNING:
            return []
        return [*ended, *facts.repair_needs_user(repair.number, repair.step, f"the repair failed: {error}")]
    review = prompt is not None and open_turn and prompt.role == words.MASTER
    return block(run, words.BY_CRASH, error, tool_project, interrupted=review, so_far=ended)


def _judged(run: Run, prompt: Prompt, reply: Reply, tool_project: str | None) -> list[Fact]:
    said = verdicts.supervision(reply.content, run.rules)
    if isinstance(said, verdicts.NoVerdict):
        nothing = facts.verdict(prompt.queue_id, prompt.step, words.NO_VERDICT, "", 0, said.why)
        return _asked_again(run, prompt, f"it {said.why}", tool_project, so_far=[nothing])
    judged = facts.verdict(prompt.queue_id, prompt.step, said.decision, said.feedback, said.findings)
    if prompt.stage == words.PLAN_REVIEW:
        return _plan_judged(run, judged, said, tool_project)
    progress = _progress(run, prompt)
    match said.decision:
        case words.APPROVE:
            approved = [judged, facts.step_approved(prompt.queue_id, progress.step.id, said.feedback)]
            return [*approved, _onwards(after(run, approved))]
        case words.CORRECT if progress.correction_round < run.rules.correction_rounds_max:
            text = prompts.correct(progress, said.feedback)
            return [judged, enqueuing.work(run, progress, "correct", text)]
        case words.CORRECT:
            reason = f"still to be mended after {progress.correction_round} correction rounds: {said.feedback}"
            return block(run, words.BY_ROUNDS, reason, tool_project, so_far=[judged])
    return block(run, words.BY_VERDICT, said.feedback, tool_project, so_far=[judged])


def _plan_judged(run: Run, judged: Fact, said: verdicts.Verdict, tool_project: str | None) -> list[Fact]:
    """A plan is not corrected: that blocks the run as well."""
    if said.decision == words.APPROVE:
        return [judged, _onwards(after(run, [judged]))]
    return block(run, words.BY_VERDICT, said.feedback, tool_project, so_far=[judged])


def _onwards(run: Run) -> Fact:
    """To the next step that is to be done, or to the review of the whole."""
    if run.step is None:
        return enqueuing.final_review(run)
    return enqueuing.work(run, run.step, "work", prompts.work(run.step))


def _asked_again(
    run: Run, prompt: Prompt, why: str, tool_project: str | None, *, so_far: list[Fact] | None = None
) -> list[Fact]:
    """Once; then the run is blocked."""
    told = so_far or []
    if prompt.purpose != "ask_again":
        return [*told, enqueuing.ask_again(run, prompt, why)]
    cause = words.BY_NO_VERDICT if told else words.BY_NO_REPLY
    what = "gave no verdict" if told else "gave no reply that can be taken"
    return block(run, cause, f"the {prompt.role} {what}, twice: {why}", tool_project, so_far=told)


def _interrupted(run: Run, prompt: Prompt, reply: Reply, tool_project: str | None, diff: str) -> list[Fact]:
    """A review is begun anew: it changes nothing. What an agent was doing is never done again without a word."""
    reason = f"the {prompt.role} was interrupted: {reply.error or 'nobody knows why'}"
    if prompt.role == words.WORKER:
        return block(run, words.BY_INTERRUPTION, reason, tool_project, so_far=[])
    progress = run.progress(prompt.step)
    restarts = run.run_restarts if progress is None else progress.restarts
    if restarts >= run.rules.review_restarts_max:
        reason = f"{reason} (after {restarts} restarts of the review)"
        return block(run, words.BY_INTERRUPTION, reason, tool_project, interrupted=True, so_far=[])
    restarted = facts.review_restarted(prompt.queue_id, prompt.step, restarts + 1)
    if progress is not None and prompt.stage == words.SUPERVISOR:
        return [restarted, enqueuing.review(run, progress, report_of(run, prompt.step), diff, restarted=True)]
    if prompt.stage == words.FINAL_REVIEW:
        return [restarted, enqueuing.final_review(run, restarted=True)]
    return [restarted, enqueuing.plan_review(run, restarted=True)]


def _progress(run: Run, prompt: Prompt) -> Progress:
    progress = run.progress(prompt.step)
    if progress is None:
        raise ValueError(f"prompt {prompt.queue_id} belongs to no step")
    return progress
