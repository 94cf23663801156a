"""A run's stream as a runner sees it: read on from where it stands, append behind what was seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from ledger.client.api import Api, ApiError
from ledger.errors import StreamMoved
from ledger.events.decode import new_event
from ledger.events.model import Recorded, task_root
from ledger.events.times import parse_instant
from projections.remediation.facts import Fact

ACTOR = "remediation"
_EVENTS_AT_ONCE = 500


class Journal(Protocol):
    def active_run(self) -> str | None:
        """The run that is active, None where there is none."""

    def is_over(self, run_id: str) -> bool:
        """Whether the run has ended: of itself, or because somebody cancelled its task."""

    def read(self, run_id: str, after_seq: int) -> Iterable[Recorded]:
        """All that stands behind `after_seq`, in seq order."""

    def append(self, run_id: str, facts: Sequence[Fact], expected_seq: int) -> None:
        """Appends them together, if `expected_seq` is the last seq still; else raises StreamMoved."""


class ServerJournal:
    """The journal that a server keeps. `api` is an owner's; not for use by two threads at once. Raises ApiError."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def active_run(self) -> str | None:
        standing = self._api.remediation(brief=True)
        return str(standing["run_id"]) if standing.get("active") is True else None

    def is_over(self, run_id: str) -> bool:
        try:
            return self.active_run() != run_id
        except ApiError as error:
            if error.code != "unknown_run":
                raise
            return True  # the one that is active is another owner's, so ours is not

    def read(self, run_id: str, after_seq: int) -> Iterator[Recorded]:
        following: int | None = after_seq + 1
        while following is not None:
            page = self._api.session_events(run_id, **{"from": following, "limit": _EVENTS_AT_ONCE})
            yield from map(recorded_of, page["events"])
            following = page["next"]

    def append(self, run_id: str, facts: Sequence[Fact], expected_seq: int) -> None:
        events = [
            {"seq": expected_seq + number, "kind": fact.kind, "actor": ACTOR, "payload": fact.payload}
            for number, fact in enumerate(facts, 1)
        ]
        try:
            self._api.push(run_id, events, expected_seq=expected_seq)
        except ApiError as error:
            if error.code != StreamMoved.code:
                raise
            last_seq = error.problem.get("last_seq")
            raise StreamMoved(run_id, expected_seq, last_seq if isinstance(last_seq, int) else -1) from error


@contextmanager
def server_journal(connect: Callable[[], Api]) -> Iterator[Journal]:
    """A journal with a connection of its own."""
    with connect() as api:
        yield ServerJournal(api)


def recorded_of(event: dict[str, Any]) -> Recorded:
    """An event as the API gives it, as the folds take it."""
    at = event.get("at")
    made = new_event(event["seq"], event["kind"], event["actor"], event["payload"])
    run_id, task_id = event["session_id"], event.get("task_id")
    return Recorded(
        event["position"],
        0,
        run_id,
        event["seq"],
        event["kind"],
        event["actor"],
        None if at is None else parse_instant(at),
        parse_instant(event["recorded_at"]) or 0,
        task_id,
        task_root(task_id or run_id),
        made.payload,
        made.digest,
    )
