"""How a run comes to stand, and how its repair gets it going again; pure."""

from __future__ import annotations

from ledger.daemons.remediation import verdicts
from projections.remediation import enqueuing, facts, prompts, words
from projections.remediation.facts import Fact
from projections.remediation.following import after
from projections.remediation.state import Reply, Run


def block(
    run: Run, cause: str, reason: str, tool_project: str | None, *, interrupted: bool = False, so_far: list[Fact]
) -> list[Fact]:
    """`so_far`, and behind it the block at the stage where `run` is; with a repair, where there is a project for one
    and the step has not used its repairs up. `interrupted`: nothing but a review is missing."""
    stage, step_id = run.stage, _step_of(run)
    standing = _repair_standing(run, step_id, tool_project)
    blocked = facts.run_blocked(stage, step_id, cause, reason, interrupted=interrupted, repair=standing)
    decided = [*so_far, *blocked]
    if tool_project is None or standing != words.REPAIR_STARTED:
        return decided
    return [*decided, *_repair(after(run, decided), step_id, stage, reason, tool_project, catchup=False)]


def needs_catch_up(run: Run, tool_project: str | None) -> bool:
    """True for a run that an older version left blocked without word of a repair."""
    if run.block is None or run.block.repair or tool_project is None:
        return False
    return _repair_standing(run, run.block.step, tool_project) == words.REPAIR_STARTED


def catch_up(run: Run, tool_project: str) -> list[Fact]:
    if run.block is None:
        raise ValueError("a run that is not blocked needs no repair")
    stage, step_id = run.block.stage, run.block.step
    return _repair(run, step_id, stage, run.block.reason, tool_project, catchup=True)


def repaired(run: Run, reply: Reply, diff: str) -> list[Fact]:
    """Where the repair's reply leads."""
    repair, block = run.repair, run.block
    if repair is None or block is None:
        raise ValueError("no repair is under way")
    if reply.status != words.DONE:
        return facts.repair_needs_user(
            repair.number, repair.step, f"the repair failed: {reply.error or reply.status}"
        )
    if reply.trouble:
        told = TROUBLES.get(reply.trouble, reply.trouble)
        return facts.repair_needs_user(repair.number, repair.step, f"the repair's reply {told}")
    said = verdicts.self_repair(reply.content, run.rules)
    if isinstance(said, verdicts.NoVerdict):
        return facts.repair_needs_user(repair.number, repair.step, f"the repair's reply {said.why}")
    if said.decision == words.ASKS_USER:
        return facts.repair_needs_user(repair.number, repair.step, said.feedback)
    stage = _stage_after_repair(run)
    decided = facts.repair_resumed(repair.number, block.step, stage, said.feedback, said.prompt_addendum)
    return [*decided, _prompt_after_repair(after(run, decided), stage, block.step, block.reason, said, diff)]


def report_of(run: Run, step_id: str | None) -> str:
    """What the agent of a step reported last."""
    told = [one.reply for one in run.in_order() if one.step == step_id and one.role == words.WORKER]
    good = [reply for reply in told if reply is not None and reply.status == words.DONE and not reply.trouble]
    return good[-1].content if good else ""


def _repair(run: Run, step_id: str | None, stage: str, reason: str, project: str, *, catchup: bool) -> list[Fact]:
    started = facts.repair_started(len(run.repairs) + 1, step_id, stage, reason, catchup=catchup)
    return [started, enqueuing.repair(run, step_id, stage, reason, project)]


def _repair_standing(run: Run, step_id: str | None, tool_project: str | None) -> str:
    progress = run.progress(step_id)
    used = run.run_repairs if progress is None else progress.repairs
    if used >= run.rules.repairs_max:
        return words.REPAIRS_USED_UP
    return words.REPAIR_NOT_CONFIGURED if tool_project is None else words.REPAIR_STARTED


def _step_of(run: Run) -> str | None:
    """Where all steps are approved, none is blocked by what comes after."""
    return None if run.step is None or run.stage == words.FINAL_REVIEW else run.step.step.id


def _stage_after_repair(run: Run) -> str:
    """A plan that was not approved is reviewed again, as the whole is; and so is a step of which only the review was
    interrupted. Any other goes back to its agent."""
    block = run.block
    if block is None:
        return run.stage
    if block.stage in (words.PLAN_REVIEW, words.FINAL_REVIEW):
        return block.stage
    return words.SUPERVISOR if block.stage == words.SUPERVISOR and block.review_interrupted else words.AGENT


def _prompt_after_repair(
    run: Run, stage: str, step_id: str | None, why: str, said: verdicts.RepairVerdict, diff: str
) -> Fact:
    progress = run.progress(step_id)
    note = prompts.quoted("A repair has mended the tool", said.feedback) if said.feedback else ""
    if stage == words.PLAN_REVIEW:
        return enqueuing.plan_review(run, note=note)
    if stage == words.FINAL_REVIEW or progress is None:
        return enqueuing.final_review(run, note=note)
    if stage == words.SUPERVISOR:
        return enqueuing.review(run, progress, report_of(run, step_id), diff, restarted=True)
    text = prompts.carry_on(progress, why, addendum=said.prompt_addendum)
    return enqueuing.work(run, progress, "repaired", text)


EMPTY, TOO_LONG, NOT_UTF8 = "empty", "too_long", "not_utf8"
TROUBLES = {EMPTY: "is empty", TOO_LONG: "is too long", NOT_UTF8: "is not UTF-8"}
