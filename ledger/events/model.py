"""What an event is, before and after the log has taken it."""

from __future__ import annotations

import msgspec

OPENING_SEQ = -1  # the slot of session.opened
END_SEQ = 2**63 - 1  # the slot of a terminal result that was pushed without a seq
NO_EVENTS = -2  # as `expected_seq`: the stream must not exist yet

ID_CHARS_MAX = 200


class Limits(msgspec.Struct, frozen=True):
    """What comes in at most. Sizes in bytes."""

    body_bytes: int = 16 * 2**20
    payload_bytes: int = 4 * 2**20
    chunk_events: int = 10_000
    nesting: int = 200
    in_flight_bytes: int = 64 * 2**20


class NewEvent(msgspec.Struct, frozen=True, gc=False):
    """An event as it goes into the log.

    `payload` is JSON text in UTF-8, byte for byte as it came unless repaired; `at` is nanoseconds since the
    Unix epoch (UTC) as the sender claims, or None; `digest` is `content_digest(kind, actor, payload)`;
    `extra` is a JSON object of the event's unknown fields, or None. `recorded_at` (ns) is set only when an
    event is carried over from another ledger.
    """

    seq: int
    kind: str
    actor: str
    payload: bytes
    digest: bytes
    at: int | None = None
    extra: bytes | None = None
    recorded_at: int | None = None


class Recorded(msgspec.Struct, frozen=True, gc=False):
    """An event as it stands in the log. `position` is gapless and in commit order within `bucket`.

    `root` is `goal/ID`, `task/ID` or `project/ID`; `task_id` is the scope, None on a goal's or project's own
    stream. Times are nanoseconds since the Unix epoch (UTC).
    """

    position: int
    bucket: int
    session_id: str
    seq: int
    kind: str
    actor: str
    at: int | None
    recorded_at: int
    task_id: str | None
    root: str
    payload: bytes
    digest: bytes
    extra: bytes | None = None


def goal_root(goal_id: str) -> str:
    return f"goal/{goal_id}"


def task_root(task_id: str) -> str:
    return f"task/{task_id}"


def goal_stream(goal_id: str) -> str:
    return f"@goal/{goal_id}"


def task_stream(task_id: str) -> str:
    return f"@task/{task_id}"


def project_stream(project_id: str) -> str:
    return f"@project/{project_id}"
