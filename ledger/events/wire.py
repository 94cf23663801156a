"""The bodies that come in and the receipts that go out, as the design's wire table has them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ledger.events.model import END_SEQ

Id = str | int  # a JSON integer is taken as its decimal string
SeenSeq = Annotated[int, msgspec.Meta(ge=-1, lt=END_SEQ)]


class TaskIn(msgspec.Struct, frozen=True):
    """The task of an ad hoc session: found by `id`, else made."""

    id: Id | None = None
    title: str = ""
    project_id: Id | None = None
    goal_id: Id | None = None


class OpenIn(msgspec.Struct, frozen=True):
    """Opens a session: one of `task_id` and `task` is needed where the session is new, unless `same_run_as` or
    `parent_session_id` names a session of this saddle that is open: then its task is meant. `same_run_as` is another
    session that reports the same run of the agent, open or not. `at` is when the agent began, for a session that is
    told later."""

    session_id: Id | None = None
    task_id: Id | None = None
    task: TaskIn | None = None
    resumed_from: Id | None = None
    parent_session_id: Id | None = None
    same_run_as: Id | None = None
    agent: str | None = None
    model: str | None = None
    cwd: str | None = None
    host: str | None = None
    contiguous: bool = False
    at: str | int | float | None = None


class EventIn(msgspec.Struct, frozen=True):
    """One event. Fields that the ledger does not know are kept with it."""

    seq: int
    kind: str
    actor: str = ""
    payload: Any = {}
    at: str | int | float | None = None


class ChunkIn(msgspec.Struct, frozen=True):
    """A batch of events of one session. `open` opens the session first, with the fields of POST …/sessions.
    `expected_seq` is the last seq that the sender has seen (-1: none): the chunk is stored whole, or not at all where
    the session has moved on. The same chunk, sent again, counts as duplicates."""

    session_id: Id
    events: list[EventIn]
    open: OpenIn | None = None
    expected_seq: SeenSeq | None = None


class ResultIn(msgspec.Struct, frozen=True):
    session_id: Id
    state: str
    summary: str | None = None
    seq: int | None = None
    at: str | int | float | None = None


class AskIn(msgspec.Struct, frozen=True):
    """`session_id` names the session that a claim opens, so that an ask whose answer was lost can be repeated."""

    wait_s: float = 0
    session_id: Id | None = None
    agent: str | None = None
    model: str | None = None
    cwd: str | None = None
    host: str | None = None


class HeartbeatIn(msgspec.Struct, frozen=True):
    host: str | None = None
    version: str | None = None


class ProjectIn(msgspec.Struct, frozen=True):
    title: str = ""
    id: Id | None = None


class GoalIn(msgspec.Struct, frozen=True):
    title: str
    id: Id | None = None
    project_id: Id | None = None
    brief: str = ""
    branch_name: str = ""


class NewTaskIn(msgspec.Struct, frozen=True):
    title: str
    id: Id | None = None
    project_id: Id | None = None
    goal_id: Id | None = None
    brief: str = ""


class DecisionIn(msgspec.Struct, frozen=True):
    """The body of a decision; may be left away."""

    reason: str = ""


class RemediationStartIn(msgspec.Struct, frozen=True):
    """A plan: each step has id, order, target, title, prompt and, if need be, aliases, phase, phaseLabel, summary and
    risk."""

    steps: list[dict[str, Any]]


class RemediationResumeIn(msgspec.Struct, frozen=True):
    """All steps of the run anew, where what is told to the agents has changed; order, targets and risks must not."""

    steps: list[dict[str, Any]] | None = None


class ApproveIn(msgspec.Struct, frozen=True):
    """What the owner grants, in words; what was asked for, if it is left away."""

    feedback: str = ""


class TokenIn(msgspec.Struct, frozen=True):
    role: str
    name: str
    expires_at: str | int | float | None = None


class Rejected(msgspec.Struct, frozen=True):
    """An event that cannot be stored. Its sender must not send it again as it is."""

    index: int
    seq: Any
    code: str
    detail: str


class Repaired(msgspec.Struct, frozen=True):
    """What was mended in an event before it was stored."""

    seq: int
    what: str


class ConflictOut(msgspec.Struct, frozen=True):
    seq: int


class ChunkReceipt(msgspec.Struct, frozen=True, omit_defaults=False):
    stored: int
    duplicates: int
    conflicts: list[ConflictOut]
    rejected: list[Rejected]
    repaired: list[Repaired]
    high_seq: int | None
    cursor: str
    missing: list[tuple[int, int]] | msgspec.UnsetType = msgspec.UNSET


class RequestOut(msgspec.Struct, frozen=True):
    """What an owner asked of a loop, by an event of its task's own stream: `action` is halt or resume, `seq` its
    place there, `by` who asked."""

    seq: int
    action: str
    reason: str
    by: str
    at: str


class RequestsOut(msgspec.Struct, frozen=True):
    requests: list[RequestOut]


class StatusOut(msgspec.Struct, frozen=True):
    id: str
    status: str


class ResultReceipt(msgspec.Struct, frozen=True):
    """`task` and `goal` say how they stand after the push, whether or not it changed them."""

    stored: int
    duplicate: bool
    conflict: bool
    task: StatusOut | None
    goal: StatusOut | None
