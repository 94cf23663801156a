"""What was done to a ledger, step by step, as data: what a recorded bundle holds and what faults rearrange.

The file of a bundle is one JSON object:

    {"ledgerd_bundle": 1, "goal_id": "7", "run_task_id": "12",
     "expected": {"digest": "…", "status": "failed", "tasks": {"12": {"status": …, "attempt": 1, "summary": …}, …}},
     "steps": [{"do": "create_goal", …}, {"do": "open", …}, {"do": "push", …}, {"do": "end", …}, …]}

Steps stand in the order in which the ledger recorded them. Payloads are byte for byte as the ledger held them,
times are RFC 3339 or null where the sender gave none. A reader refuses a version that it does not know.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ledger.errors import InvalidRequest
from ledger.events.content import payload_object
from ledger.events.kinds import RESULT, TERMINAL_STATES

VERSION = 1


class Event(msgspec.Struct, frozen=True):
    """One event of a push."""

    seq: int
    kind: str
    actor: str
    payload: msgspec.Raw
    at: str | None = None

    @property
    def is_terminal(self) -> bool:
        """True for a result that ends its session."""
        return self.kind == RESULT and payload_object(bytes(self.payload)).get("state") in TERMINAL_STATES


class CreateProject(msgspec.Struct, frozen=True, tag_field="do", tag="create_project"):
    actor: str
    id: str
    title: str


class CreateGoal(msgspec.Struct, frozen=True, tag_field="do", tag="create_goal"):
    actor: str
    id: str
    title: str
    project_id: str | None
    brief: str
    branch_name: str


class CreateTask(msgspec.Struct, frozen=True, tag_field="do", tag="create_task"):
    actor: str
    id: str
    title: str
    project_id: str | None
    goal_id: str | None
    brief: str


class Decide(msgspec.Struct, frozen=True, tag_field="do", tag="decide"):
    """A decision of a person, by the name of its action."""

    actor: str
    what: Literal["goals", "tasks"]
    id: str
    action: str
    reason: str = ""


class Open(msgspec.Struct, frozen=True, tag_field="do", tag="open"):
    """`fields` are the further ones of the opening: agent, model, resumed_from, …"""

    saddle: str
    session_id: str
    task_id: str
    fields: dict[str, Any] = {}


class Push(msgspec.Struct, frozen=True, tag_field="do", tag="push"):
    saddle: str
    session_id: str
    events: tuple[Event, ...]

    @property
    def is_terminal(self) -> bool:
        return any(event.is_terminal for event in self.events)


class End(msgspec.Struct, frozen=True, tag_field="do", tag="end"):
    """A terminal state, pushed without a seq."""

    saddle: str
    session_id: str
    state: str
    summary: str | None
    at: str | None = None


class Restart(msgspec.Struct, frozen=True, tag_field="do", tag="restart"):
    """The server is stopped and started; never recorded, a fault puts it in."""


Step = CreateProject | CreateGoal | CreateTask | Decide | Open | Push | End | Restart
Steps = tuple[Step, ...]


class Ending(msgspec.Struct, frozen=True):
    """How a task stood at the end."""

    status: str
    attempt: int
    summary: str | None


class Expected(msgspec.Struct, frozen=True):
    """What a replay must come to."""

    digest: str
    status: str
    tasks: dict[str, Ending]


class Bundle(msgspec.Struct, frozen=True):
    """A recorded goal. `run_task_id` is the task that the ledger made itself when the goal was started, if it was."""

    ledgerd_bundle: int
    goal_id: str
    run_task_id: str | None
    expected: Expected
    steps: Steps


class _Version(msgspec.Struct):
    ledgerd_bundle: int


def dump(bundle: Bundle) -> bytes:
    """The bundle's file: one step a line, so that two versions of it can be compared."""
    head = msgspec.json.encode(msgspec.structs.replace(bundle, steps=())).removesuffix(b"[]}")
    return head + b"[\n" + b",\n".join(map(msgspec.json.encode, bundle.steps)) + b"\n]}\n"


def load(data: bytes) -> Bundle:
    """Reads a bundle's file; raises InvalidRequest where it is none or of another version."""
    try:
        version = msgspec.json.decode(data, type=_Version).ledgerd_bundle
        if version != VERSION:
            raise InvalidRequest(
                f"this is a bundle of version {version}, and this ledgerd reads version {VERSION}",
                hint="Replay it with the ledgerd that recorded it.",
            )
        return msgspec.json.decode(data, type=Bundle)
    except msgspec.MsgspecError as error:
        raise InvalidRequest(
            f"this is no bundle: {error}", hint="`ledgerd bundle record GOAL -o FILE` writes one."
        ) from error
