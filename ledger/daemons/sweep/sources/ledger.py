"""The sessions of a running ledger, whatever agent wrote them. A session's key is SESSION:HIGH_SEQ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from ledger.client.api import ApiError
from ledger.daemons.sweep.model import Found, Moment, SessionText, SessionUnreadable, SourceFailed, Unreadable
from ledger.daemons.sweep.sources.files import one_line
from ledger.errors import LedgerError
from ledger.events.times import parse_instant
from projections import daemons

OWN_AGENT = daemons.SWEEP
TASKS_A_PAGE, EVENTS_A_PAGE = 500, 1_000

Json = dict[str, Any]


class Reads(Protocol):
    """What is needed of `ledger.client.api.Api`, with a reader's token."""

    def tasks(self, **filters: Any) -> Json: ...

    def task(self, id: str, **params: Any) -> Json: ...

    def session(self, id: str) -> Json: ...

    def session_events(self, id: str, **params: Any) -> Json: ...


class LedgerSource:
    """All sessions of all tasks, but for a sweep's own: it would judge itself. Others on a task stay, whatever stands
    beside them: who pushes could have put it there."""

    type = "ledger"

    def __init__(self, name: str, url: str, api: Reads) -> None:
        self.name = name
        self._url = url
        self._api = api
        self._titles: dict[str, tuple[str, str | None]] = {}

    def sessions(self) -> Iterator[Found | Unreadable]:
        """The longest unchanged first. Raises SourceFailed where the ledger cannot be asked for its tasks."""
        found: list[Found] = []
        for task in self._tasks():
            try:
                sessions = [one for one in self._api.task(task["id"], limit=1)["sessions"] if isinstance(one, dict)]
                others = [one for one in sessions if one.get("agent") != OWN_AGENT]
                found += [one for session in others if (one := self._found(session, task)) is not None]
            except (LedgerError, KeyError, TypeError) as error:
                where = f"{self._url}/tasks/{task.get('id')}"
                yield Unreadable(self.name, one_line(f"task {task.get('id')}"), where, _why(error))
        yield from sorted(found, key=lambda one: (one.at_ns or 0, one.key))

    def read(self, found: Found) -> SessionText:
        title, cwd = self._titles.get(str(found.session_id), (str(found.session_id), None))
        return SessionText(found, title, cwd, self._moments(found))

    def _tasks(self) -> Iterator[Json]:
        after: str | None = None
        while True:
            try:
                page = self._api.tasks(limit=TASKS_A_PAGE, after=after)
            except LedgerError as error:
                raise SourceFailed(f"source {self.name!r}: {_why(error)}", hint=error.hint) from error
            yield from (item for item in page.get("items") or () if isinstance(item, dict))
            if (after := page.get("next")) is None:
                return

    def _found(self, session: Json, task: Json) -> Found | None:
        """A session as it stands now; None before anything was pushed into it."""
        id_ = str(session["session_id"])
        now = self._api.session(id_)
        high_seq = now.get("high_seq")
        if not isinstance(high_seq, int):
            return None
        self._titles[id_] = str(task.get("title") or id_), now.get("cwd")
        at_ns = parse_instant(now.get("last_at"))
        where = f"{self._url}/sessions/{id_}"
        agent = str(session.get("agent") or self.type)
        return Found(self.name, f"{one_line(id_)}:{high_seq}", where, agent, id_, at_ns)

    def _moments(self, found: Found) -> Iterator[Moment]:
        start: int | None = None
        while True:
            try:
                page = self._api.session_events(str(found.session_id), limit=EVENTS_A_PAGE, **_from(start))
                yield from (_moment(event) for event in page["events"])
                start = page.get("next")
            except (LedgerError, KeyError, TypeError) as error:
                raise SessionUnreadable(f"source {self.name!r}: {found.where}: {_why(error)}") from error
            if start is None:
                return


def _from(start: int | None) -> Mapping[str, int]:
    return {} if start is None else {"from": start}


def _moment(event: Json) -> Moment:
    payload = event.get("payload")
    return Moment(
        str(event["session_id"]),
        int(event["seq"]),
        str(event["kind"]),
        str(event["actor"]),
        payload if isinstance(payload, dict) else {},
        event.get("at"),
    )


def _why(error: Exception) -> str:
    if isinstance(error, ApiError | LedgerError):
        return error.detail
    return f"not what a ledger answers: {error!r}"
