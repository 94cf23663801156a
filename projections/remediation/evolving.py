"""The fold of a run's stream. It follows prompts and replies by their queue id: whatever comes a second time for a
queue id changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from ledger.events.content import payload_object
from ledger.events.model import END_SEQ, Recorded
from projections.fold import Projection
from projections.payloads import text, text_or_none
from projections.remediation import words
from projections.remediation.facts import rules_of
from projections.remediation.plan import Project, Step, project_of
from projections.remediation.state import Block, Lease, Noted, Progress, Prompt, Repair, Reply, Review, Run
from projections.session import time_of

Fields = dict[str, Any]

_NOT_NOTED = frozenset({words.LEASE_TAKEN, words.LEASE_RELEASED})


def evolve(run: Run, event: Recorded) -> Run:
    if event.seq <= run.last_seq or event.seq == END_SEQ:
        return run
    payload = _storable(payload_object(event.payload))
    step = _EVOLVE.get(event.kind)
    if step is not None:
        run = step(run, payload, event)
        if event.kind not in _NOT_NOTED:
            run = replace(
                run, events=(*run.events, Noted(event.seq, event.kind, time_of(event), event.actor, payload))
            )
    return replace(run, last_seq=event.seq)


def _started(run: Run, payload: Fields, event: Recorded) -> Run:
    if run.status != words.NOT_STARTED:
        return run
    projects = tuple(_converted(one, Project) for one in _list(payload, "projects"))
    known = tuple(one for one in projects if one is not None)
    steps = [step for one in _list(payload, "steps") if (step := _converted(one, Step)) is not None]
    return replace(
        run,
        id=text(payload, "run_id") or event.session_id,
        owner=text(payload, "owner") or event.actor,
        status=words.RUNNING,
        stage=words.PLAN_REVIEW,
        master=text(payload, "master"),
        tool_project=text_or_none(payload, "tool_project"),
        projects=known,
        rules=rules_of(payload.get("rules", {})),
        steps=tuple(
            Progress(step, project_of(step, known) or step.target, f"step-{number}", prompt=step.prompt)
            for number, step in enumerate(steps, 1)
        ),
        started_at=time_of(event),
    )


def _enqueued(run: Run, payload: Fields, event: Recorded) -> Run:
    queue_id, role, step_id = text(payload, "queue_id"), text(payload, "role"), text_or_none(payload, "step")
    if not queue_id or queue_id in run.prompts:
        return run
    progress = run.progress(step_id)
    prompt = Prompt(
        queue_id,
        text(payload, "conversation"),
        text(payload, "project"),
        role,
        text(payload, "stage") or _stage_by_role(run, role, step_id),
        text(payload, "purpose"),
        text(payload, "text"),
        step_id,
        _int(payload, "attempt"),
        enqueued_at=time_of(event),
    )
    run = replace(run, prompts=run.prompts.set(queue_id, prompt), last_prompt=queue_id, active=queue_id)
    if role == words.REPAIR:
        return run
    fresh = prompt.stage != run.stage or run.status == words.BLOCKED
    run = replace(run, status=words.RUNNING, stage=prompt.stage, block=None)
    if prompt.stage in (words.PLAN_REVIEW, words.FINAL_REVIEW) and fresh:
        run = replace(run, run_restarts=0)
    if progress is not None and role == words.WORKER:
        rounds = progress.correction_round + (prompt.purpose == "correct")
        return _with(
            run, progress, attempts=progress.attempts + 1, correction_round=rounds, restarts=0, **_at_work(prompt)
        )
    if progress is not None and prompt.stage == words.SUPERVISOR:
        return _with(run, progress, status=words.REVIEWING)
    return run


def _at_work(prompt: Prompt) -> dict[str, str]:
    if prompt.purpose == "ask_again":
        return {}
    return {"status": words.WORKING if prompt.purpose == "work" else words.CORRECTING}


def _turn_started(run: Run, payload: Fields, event: Recorded) -> Run:
    prompt = run.prompts.get(text(payload, "queue_id"))
    if prompt is None or prompt.started_at is not None:
        return run
    commit = text_or_none(payload, "commit")
    runner = text(payload, "runner") or event.actor
    prompt = replace(prompt, runner=runner, started_at=time_of(event), commit=commit)
    run = _with_prompt(run, prompt)
    progress = run.progress(prompt.step)
    if progress is not None and prompt.role == words.WORKER and progress.commit is None:
        run = _with(run, progress, commit=commit)
    return run


def _turn_finished(run: Run, payload: Fields, event: Recorded) -> Run:
    prompt = run.prompts.get(text(payload, "queue_id"))
    if prompt is None:
        return run
    if prompt.reply is not None:
        return _with_prompt(run, replace(prompt, late=prompt.late + 1))
    reply = _converted(payload, Reply) or Reply(
        text(payload, "status") or words.FAILED, text(payload, "content"), text(payload, "error")
    )
    run = _with_prompt(run, replace(prompt, reply=reply, finished_at=time_of(event)))
    if reply.resume and prompt.role != words.MASTER:  # each review begins afresh
        run = replace(run, handles=run.handles.set(prompt.conversation, reply.resume))
    if reply.cost_usd is None:
        return replace(run, cost_unknown=run.cost_unknown + 1)
    return replace(run, cost_usd=run.cost_usd + reply.cost_usd)


def _judged(run: Run, payload: Fields, event: Recorded) -> Run:
    prompt = run.prompts.get(text(payload, "queue_id"))
    if prompt is None:
        return run
    progress = run.progress(prompt.step)
    review = Review(
        prompt.queue_id,
        text(payload, "decision"),
        text(payload, "feedback"),
        _int(payload, "findings"),
        prompt.attempt,
        0 if progress is None else progress.correction_round,
        text(payload, "reason"),
        time_of(event),
    )
    run = _answered(run, prompt.queue_id)
    if progress is None or prompt.stage != words.SUPERVISOR:
        return replace(run, plan_reviews=(*run.plan_reviews, review))
    return _with(run, progress, reviews=(*progress.reviews, review))


def _approved(run: Run, payload: Fields, _: Recorded) -> Run:
    progress = run.progress(text_or_none(payload, "step"))
    if progress is None or progress.status == words.APPROVED:
        return run
    run = _with(run, progress, status=words.APPROVED)
    current = next((n for n, one in enumerate(run.steps) if one.status != words.APPROVED), len(run.steps))
    return replace(run, current=current)


def _restarted(run: Run, payload: Fields, _: Recorded) -> Run:
    run = _answered(run, text(payload, "queue_id"))
    progress = run.progress(text_or_none(payload, "step"))
    if progress is None:
        return replace(run, run_restarts=run.run_restarts + 1)
    return _with(run, progress, restarts=progress.restarts + 1)


def _blocked(run: Run, payload: Fields, event: Recorded) -> Run:
    if run.status != words.RUNNING:
        return run
    last = None if run.last_prompt is None else run.prompts[run.last_prompt]
    stage = text(payload, "stage") or (run.stage if last is None else last.stage)
    at_step = run.step if stage != words.FINAL_REVIEW else None
    step_id = text_or_none(payload, "step") or (None if at_step is None else at_step.step.id)
    block = Block(
        stage,
        step_id,
        text(payload, "cause"),
        text(payload, "reason"),
        payload.get("review_interrupted") is True,
        text(payload, "repair"),
        time_of(event),
    )
    run = replace(run, status=words.BLOCKED, stage=stage, block=block, active=None)
    progress = run.progress(step_id)
    if progress is None or progress.status == words.APPROVED:
        return run
    return _with(run, progress, status=words.BLOCKED)


def _repair_started(run: Run, payload: Fields, event: Recorded) -> Run:
    number, step_id = len(run.repairs) + 1, text_or_none(payload, "step")
    repair = Repair(
        number,
        words.RUNNING,
        step_id,
        text(payload, "stage") or run.stage,
        text(payload, "reason"),
        f"repair-{number}",
        started_at=time_of(event),
    )
    run = replace(run, repairs=(*run.repairs, repair))
    if run.block is not None:
        run = replace(run, block=replace(run.block, repair=words.REPAIR_STARTED))
    progress = run.progress(step_id)
    if progress is None:
        return replace(run, run_repairs=run.run_repairs + 1)
    return _with(run, progress, repairs=progress.repairs + 1)


def _repair_resumed(run: Run, payload: Fields, event: Recorded) -> Run:
    addendum = text(payload, "prompt_addendum")
    run = _repair_ended(run, words.SUCCEEDED, payload, event, addendum)
    progress = run.progress(text_or_none(payload, "step"))
    if progress is not None and addendum:
        run = _with(run, progress, prompt=f"{progress.prompt}\n\n{addendum}")
    return _goes_on(run, payload)


def _repair_needs_user(run: Run, payload: Fields, event: Recorded) -> Run:
    return _repair_ended(run, words.NEEDS_USER, payload, event)


def _repair_resolved(run: Run, payload: Fields, event: Recorded) -> Run:
    return _repair_ended(run, words.SUPERSEDED, payload, event)


def _resumed(run: Run, payload: Fields, _: Recorded) -> Run:
    revised = {step.id: step for one in _list(payload, "steps") if (step := _converted(one, Step)) is not None}
    if payload.get("plan_rebased") is True:
        run = replace(run, steps=tuple(_revised(one, revised.get(one.step.id)) for one in run.steps))
    return _goes_on(run, payload)


def _owner_approved(run: Run, payload: Fields, _: Recorded) -> Run:
    progress = run.progress(text_or_none(payload, "step"))
    if progress is None:
        return run
    return _with(run, progress, approved_by_owner=(*progress.approved_by_owner, text(payload, "feedback")))


def _completed(run: Run, _: Fields, event: Recorded) -> Run:
    if not run.is_active:
        return run
    return replace(
        run, status=words.COMPLETED, stage=words.IDLE, active=None, block=None, ended_at=time_of(event), lease=None
    )


def _lease_taken(run: Run, payload: Fields, event: Recorded) -> Run:
    return replace(run, lease=Lease(text(payload, "runner") or event.actor, _int(payload, "expires_at")))


def _lease_released(run: Run, payload: Fields, _: Recorded) -> Run:
    mine = run.lease is not None and run.lease.runner == text(payload, "runner")
    return replace(run, lease=None) if mine else run


def _goes_on(run: Run, payload: Fields) -> Run:
    """Out of a block. Steps stand as the prompt that follows will have them; only a plan's review puts one back."""
    stage = text(payload, "stage") or words.AGENT
    run = replace(run, status=words.RUNNING, stage=stage, block=None, active=None)
    if stage in (words.PLAN_REVIEW, words.FINAL_REVIEW):
        run = replace(run, run_restarts=0)
    if stage == words.PLAN_REVIEW and run.step is not None:
        run = _with(run, run.step, status=words.PENDING)
    return run


def _revised(progress: Progress, step: Step | None) -> Progress:
    """What is approved is done; of the others everything that is told to agents is replaced, and nothing else."""
    if step is None or progress.status == words.APPROVED:
        return progress
    told = replace(progress.step, prompt=step.prompt, title=step.title, summary=step.summary)
    return replace(progress, step=told, prompt=step.prompt, correction_round=0)


def _repair_ended(run: Run, status: str, payload: Fields, event: Recorded, addendum: str = "") -> Run:
    repair = run.repair
    open_still = (words.RUNNING, words.NEEDS_USER) if status == words.SUPERSEDED else (words.RUNNING,)
    if repair is None or repair.status not in open_still:
        return run
    ended = replace(
        repair,
        status=status,
        feedback=text(payload, "feedback") or repair.feedback,
        prompt_addendum=addendum,
        finished_at=time_of(event),
    )
    run = replace(run, repairs=(*run.repairs[:-1], ended))
    return replace(run, active=None) if run.status == words.BLOCKED else run


def _answered(run: Run, queue_id: str) -> Run:
    return replace(run, active=None) if run.active == queue_id else run


def _with(run: Run, progress: Progress, **changes: Any) -> Run:
    changed = replace(progress, **changes)
    return replace(run, steps=tuple(changed if one.step.id == progress.step.id else one for one in run.steps))


def _with_prompt(run: Run, prompt: Prompt) -> Run:
    return replace(run, prompts=run.prompts.set(prompt.queue_id, prompt))


def _stage_by_role(run: Run, role: str, step_id: str | None) -> str:
    """For prompts of older versions, which say no stage."""
    if role == words.REPAIR:
        return run.stage
    if role == words.WORKER:
        return words.AGENT
    if step_id is not None:
        return words.SUPERVISOR
    return words.FINAL_REVIEW if run.step is None else words.PLAN_REVIEW


def _storable(value: Any) -> Any:
    """The value with integers that a checkpoint cannot hold as their digits."""
    if isinstance(value, dict):
        return {name: _storable(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_storable(one) for one in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return str(value)
    return value


def _converted(value: Any, wanted: type[Any]) -> Any:
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError:
        return None


def _list(payload: Fields, name: str) -> list[Any]:
    value = payload.get(name)
    return value if isinstance(value, list) else []


def _int(payload: Fields, name: str) -> int:
    value = payload.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


_EVOLVE: dict[str, Callable[[Run, Fields, Recorded], Run]] = {
    words.RUN_STARTED: _started,
    words.PROMPT_ENQUEUED: _enqueued,
    words.TURN_STARTED: _turn_started,
    words.TURN_FINISHED: _turn_finished,
    words.VERDICT: _judged,
    words.STEP_APPROVED: _approved,
    words.REVIEW_RESTARTED: _restarted,
    words.RUN_BLOCKED: _blocked,
    words.REPAIR_BEGUN: _repair_started,
    words.REPAIR_CATCHUP: _repair_started,
    words.REPAIR_RESUMED: _repair_resumed,
    words.REPAIR_NEEDS_USER: _repair_needs_user,
    words.REPAIR_RESOLVED: _repair_resolved,
    words.RUN_RESUMED: _resumed,
    words.OWNER_APPROVED: _owner_approved,
    words.RUN_COMPLETED: _completed,
    words.LEASE_TAKEN: _lease_taken,
    words.LEASE_RELEASED: _lease_released,
}

RUN: Projection[Run] = Projection("remediation", "1", Run, Run(), evolve)
