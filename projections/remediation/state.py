"""A run as its stream tells it: the plan and where each step stands, the prompts, the repair, the lease."""

from __future__ import annotations

from typing import Any

import msgspec
from immutables import Map

from projections.remediation import words
from projections.remediation.plan import Project, Rules, Step


class Reply(msgspec.Struct, frozen=True, gc=False):
    """What a turn came to. `status` is done, failed or interrupted. `content` is what the agent answered, bounded;
    `error` why it failed, or was interrupted. `trouble` says why a reply that was given moves nothing: empty,
    too_long, not_utf8."""

    status: str
    content: str = ""
    error: str = ""
    trouble: str = ""
    resume: str | None = None
    cost_usd: float | None = None
    exit_code: int | None = None


class Prompt(msgspec.Struct, frozen=True):
    """What was told to a conversation, and its reply. `attempt` is the step's; `runner` is who started the turn, None
    before; `commit` where the project's repository stood then. `late` counts replies that came after the first.
    Times in ns."""

    queue_id: str
    conversation: str
    project: str
    role: str
    stage: str
    purpose: str
    text: str
    step: str | None = None
    attempt: int = 0
    enqueued_at: int = 0
    runner: str | None = None
    started_at: int | None = None
    commit: str | None = None
    reply: Reply | None = None
    finished_at: int | None = None
    late: int = 0


class Review(msgspec.Struct, frozen=True, gc=False):
    """A verdict of the master. `findings` is how many things it asked to be mended."""

    queue_id: str
    decision: str
    feedback: str
    findings: int
    attempt: int
    round: int
    reason: str = ""
    at: int = 0


class Progress(msgspec.Struct, frozen=True):
    """Where a step stands. `prompt` is the step's prompt as it is now, addenda and revisions included. `attempts` is
    how often an agent was sent to work on it; `restarts` how often its review was restarted in this attempt; `commit`
    where its project's repository stood before the first attempt."""

    step: Step
    project: str
    conversation: str
    status: str = words.PENDING
    prompt: str = ""
    attempts: int = 0
    correction_round: int = 0
    restarts: int = 0
    repairs: int = 0
    commit: str | None = None
    reviews: tuple[Review, ...] = ()
    approved_by_owner: tuple[str, ...] = ()


class Repair(msgspec.Struct, frozen=True):
    number: int
    status: str
    step: str | None
    stage: str
    reason: str
    conversation: str
    feedback: str = ""
    prompt_addendum: str = ""
    started_at: int = 0
    finished_at: int | None = None


class Block(msgspec.Struct, frozen=True, gc=False):
    """Why a run stands. `repair` is empty where an older version left it without word of a repair."""

    stage: str
    step: str | None
    cause: str
    reason: str
    review_interrupted: bool = False
    repair: str = ""
    at: int = 0


class Lease(msgspec.Struct, frozen=True, gc=False):
    """Who runs it; `expires_at` in ns."""

    runner: str
    expires_at: int


class Noted(msgspec.Struct, frozen=True, gc=False):
    """An event of the run, for its timeline; times in ns."""

    seq: int
    kind: str
    at: int
    actor: str
    payload: dict[str, Any]


class Run(msgspec.Struct, frozen=True):
    """One run. `last_seq` is where its stream stands, -1 before anything; `active` is the queue id of the prompt that
    is being answered, None while nothing is; `current` the index of the step that is being worked on. `run_restarts`
    counts as `restarts` does, for the reviews of the whole plan; `run_repairs` as `repairs`, for what belongs to no
    step. `handles` are the agents' own names of the conversations; `block` is set while the run is BLOCKED; of
    `cost_unknown` turns nobody said what they cost. Times in ns."""

    id: str = ""
    owner: str = ""
    status: str = words.NOT_STARTED
    stage: str = words.IDLE
    master: str = ""
    tool_project: str | None = None
    projects: tuple[Project, ...] = ()
    rules: Rules = Rules()
    steps: tuple[Progress, ...] = ()
    current: int = 0
    active: str | None = None
    prompts: Map[str, Prompt] = Map()
    last_prompt: str | None = None
    repairs: tuple[Repair, ...] = ()
    block: Block | None = None
    plan_reviews: tuple[Review, ...] = ()
    run_restarts: int = 0
    run_repairs: int = 0
    lease: Lease | None = None
    handles: Map[str, str] = Map()
    events: tuple[Noted, ...] = ()
    started_at: int = 0
    ended_at: int | None = None
    last_seq: int = -1
    cost_usd: float = 0.0
    cost_unknown: int = 0

    @property
    def error(self) -> str | None:
        return None if self.block is None else self.block.reason

    @property
    def is_active(self) -> bool:
        """Whether it stands in the way of another start."""
        return self.status in (words.RUNNING, words.BLOCKED)

    @property
    def step(self) -> Progress | None:
        """The step that is being worked on; None before any and after the last."""
        return self.steps[self.current] if self.current < len(self.steps) else None

    @property
    def active_prompt(self) -> Prompt | None:
        return None if self.active is None else self.prompts.get(self.active)

    @property
    def repair(self) -> Repair | None:
        """The newest repair."""
        return self.repairs[-1] if self.repairs else None

    @property
    def next_queue_id(self) -> str:
        return f"q{len(self.prompts) + 1}"

    def progress(self, step_id: str | None) -> Progress | None:
        return next((one for one in self.steps if one.step.id == step_id), None)

    def in_order(self) -> list[Prompt]:
        """The prompts in the order in which they were enqueued."""
        return sorted(
            self.prompts.values(), key=lambda prompt: (prompt.enqueued_at, len(prompt.queue_id), prompt.queue_id)
        )
