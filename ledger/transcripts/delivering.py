"""Brings what a transcript holds to a ledger, so that it is there once, however often it is brought.

Other content. An agent appends to its transcript; where a key is there with other content, somebody has written the
file anew: another history. Then nothing of it may be lost, and nothing of the first may be changed. So the file is
told again as the session `SESSION~2`, `resumed_from` the first, from its beginning; if that one too differs, as
`SESSION~3`, and so on. What both tell alike is one row of the narrative, since seq, kind and content are equal. The
number depends on what the ledger holds alone: whoever brings the same file finds the same session, and stores
nothing. Where an agent edits records in place (`Format.edits_records`), what was read first stands. Redaction is part
of the content: what was brought with it and is brought again without is another history too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec
import orjson

from ledger.errors import LedgerError
from ledger.events.model import END_SEQ
from ledger.transcripts.finding import Found
from ledger.transcripts.model import Batch, Event, Mark, Report, TranscriptSession, given

HISTORIES_MAX = 20  # of one session: beyond that, conflicts stay conflicts

_PROJECT_CHARS = re.compile(r"[^a-z0-9._-]+")


class Ledger(Protocol):
    """What is asked of a client of the ledger. Its errors are LedgerErrors."""

    def push(
        self, session_id: str, events: Iterable[Mapping[str, Any]], open: Mapping[str, Any] | None = None
    ) -> dict[str, Any]: ...

    def create_project(self, title: str, **fields: Any) -> dict[str, Any]: ...


class Redactor(Protocol):
    def redact(self, text: str) -> str: ...

    def redact_payloads(self, payloads: Sequence[bytes]) -> list[bytes]: ...


class Delivered(msgspec.Struct):
    """What has been brought so far. `rewritten` counts the sessions that a file told anew."""

    sessions: set[str] = msgspec.field(default_factory=set)
    stored: int = 0
    duplicates: int = 0
    conflicts: int = 0
    rejected: int = 0
    rewritten: int = 0


class Delivery:
    """Delivers transcripts to one ledger and counts what became of them in `delivered`.

    `project` is the project of new tasks, by default the working folder's name; `host` is where the agents ran;
    without a `redactor` everything goes as it is; `say` is told of conflicts and rejected events, a line each.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        project: str | None = None,
        host: str | None = None,
        redactor: Redactor | None = None,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.delivered = Delivered()
        self._ledger = ledger
        self._project = project
        self._host = host
        self._redactor = redactor
        self._say = say
        self._projects: set[str] = set()

    def deliver(
        self,
        found: Found,
        report: Report,
        *,
        start: Mark | None = None,
        growing: bool = False,
        children: bool | None = None,
        histories: dict[str, int] | None = None,
        known: set[tuple[str, int]] | None = None,
        progress: Callable[[int], None] = lambda offset: None,
    ) -> Delivering | None:
        """Brings one transcript from `start` on.

        With `children`, only if it is (or is not) all about a subagent; None then says that it was left for later.
        `histories` are the numbers of the sessions that it tells anew, as an earlier delivery gave them. Events that
        are `known` to be there are not sent again; what is sent is added. Raises NoSession, OSError, LedgerError.
        """
        # after a mark everything is known to be of this history; a record that was edited changes none
        at = Delivering(dict(histories or {}), is_careful=start is None and not found.format.edits_records)
        while True:
            transcript = found.open(report, start, growing)
            if children is not None and transcript.is_child != children:
                return None
            for batch in transcript.batches():
                if not self._brought(found, batch, at, known):
                    break
                progress(batch.offset)
            else:
                at.mark = transcript.mark
                return at
            at.is_careful = True
            report, start = Report(), None  # told anew from the beginning; what is wrong with it has been said

    def _brought(self, found: Found, batch: Batch, at: Delivering, known: set[tuple[str, int]] | None) -> bool:
        """False where the session has to be told anew."""
        number = at.histories.get(batch.session.session_id, 1)
        session = _numbered(batch.session, number)
        events = batch.events
        if known is not None:
            events = [event for event in events if (session.session_id, event["seq"]) not in known]
        if not events:
            return True
        for receipt in self._receipts(found, session, self._redacted(events), at):
            self._count(found, session, receipt)
            conflicts = receipt["conflicts"]
            if conflicts and not found.format.edits_records and number < HISTORIES_MAX:
                at.histories[batch.session.session_id] = number + 1
                self.delivered.rewritten += 1
                return False
            self.delivered.conflicts += len(conflicts)
            for conflict in conflicts:
                self._say(f"conflict: {_where(found, session, conflict)}: there with other content")
        if known is not None:
            known.update((session.session_id, event["seq"]) for event in events)
        return True

    def _count(self, found: Found, session: TranscriptSession, receipt: Mapping[str, Any]) -> None:
        self.delivered.sessions.add(session.session_id)
        self.delivered.stored += receipt["stored"]
        self.delivered.duplicates += receipt["duplicates"]
        self.delivered.rejected += len(receipt["rejected"])
        for rejected in receipt["rejected"]:
            self._say(f"rejected: {_where(found, session, rejected)}: {rejected['detail']}")

    def _receipts(
        self, found: Found, session: TranscriptSession, events: list[Event], at: Delivering
    ) -> Iterator[dict[str, Any]]:
        """Pushes the events: one first, to hear how far the session has come, then what it should hold already, and
        only when that is the same, what is new to it: another history must not grow into this one.

        A session that is there stays as it was opened, under whatever task; only a new one is opened."""
        while events:
            part = events[: at.next_part(session.session_id, events)]
            try:
                receipt = self._ledger.push(session.session_id, part)
            except LedgerError as error:
                if error.code != "unknown_session":
                    raise
                part = events
                receipt = self._ledger.push(session.session_id, part, open=self._opening(found, session, part))
            at.high_seqs.setdefault(session.session_id, _high_seq(receipt) if len(part) == 1 else END_SEQ)
            yield receipt
            events = events[len(part) :]

    def _opening(self, found: Found, session: TranscriptSession, events: list[Event]) -> dict[str, Any]:
        project_id = self._project or project_of(session.cwd)
        if project_id and project_id not in self._projects:
            self._ensure_project(project_id)
            self._projects.add(project_id)
        title = session.title if self._redactor is None else self._redactor.redact(session.title)
        task = {"id": f"{found.format.prefix}-{session.thread_id}", "title": title, "project_id": project_id}
        times = (event["at"] for event in events if event.get("at") is not None)
        return given(
            {
                "task": given(task),
                "agent": session.agent,
                "model": session.model,
                "cwd": session.cwd,
                "host": self._host,
                "parent_session_id": session.parent_session_id,
                "resumed_from": session.resumed_from,
                "at": session.started_at if session.started_at is not None else next(times, None),
            }
        )

    def _ensure_project(self, project_id: str) -> None:
        try:
            self._ledger.create_project(project_id, id=project_id)
        except LedgerError as error:
            # it is there under another title; or a saddle's token may bring transcripts, but not create projects
            if error.code not in ("forbidden", "id_taken"):
                raise

    def _redacted(self, events: list[Event]) -> list[Event]:
        if self._redactor is None:
            return events
        payloads = [orjson.dumps(event["payload"]) for event in events]
        cleaned = self._redactor.redact_payloads(payloads)
        return [{**event, "payload": msgspec.Raw(clean)} for event, clean in zip(events, cleaned, strict=True)]


class Delivering:
    """Where a delivery stands: `mark` is where to go on, `histories` the numbers of sessions that are told anew,
    `high_seqs` the highest seqs of the sessions as they were found."""

    def __init__(self, histories: dict[str, int], *, is_careful: bool) -> None:
        self.mark: Mark | None = None
        self.histories = histories
        self.high_seqs: dict[str, int] = {}
        self.is_careful = is_careful

    def next_part(self, session_id: str, events: list[Event]) -> int:
        """How many of the events to push at once."""
        if not self.is_careful:
            return len(events)
        high_seq = self.high_seqs.get(session_id)
        if high_seq is None:
            return 1
        return next((n for n, event in enumerate(events) if event["seq"] > high_seq), 0) or len(events)


def _high_seq(receipt: Mapping[str, Any]) -> int:
    high_seq = receipt["high_seq"]
    return -1 if high_seq is None else int(high_seq)


def _where(found: Found, session: TranscriptSession, about: Mapping[str, Any]) -> str:
    return f"{found.path}: session {session.session_id}, seq {about['seq']}"


def _numbered(session: TranscriptSession, number: int) -> TranscriptSession:
    if number == 1:
        return session
    before = session.session_id if number == 2 else f"{session.session_id}~{number - 1}"
    return msgspec.structs.replace(session, session_id=f"{session.session_id}~{number}", resumed_from=before)


def project_of(cwd: str | None) -> str | None:
    """The last folder of a working folder (POSIX or Windows), as an id: `My App` is `my-app`."""
    name = re.split(r"[/\\]", (cwd or "").rstrip("/\\"))[-1]
    return _PROJECT_CHARS.sub("-", name.lower()).strip("-.")[:100] or None
