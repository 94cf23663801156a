"""Sends what waits in an outbox: in order per session, one request at a time.

Safe to stop at any point: an event leaves the queue only when a receipt has spoken of it, and what is sent twice is
stored once. What the server will not take is put aside and holds up nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeVar

import msgspec

from ledger.client.api import Api, ApiError, Json
from ledger.client.outbox.backlog import Backlog, Waiting
from ledger.client.retries import AGAIN, backoff_s
from ledger.events.content import payload_object
from ledger.events.model import NewEvent
from ledger.events.times import format_instant

BATCH_BYTES_MAX = 2**20
BATCH_EVENTS_MAX = 2000
DOUBTED_IN_A_ROUND_MAX = 4

_NO_ENTRY = (401, 403)
_BODY = (400, 413, 422)
_URL_HINT = "Set LEDGERD_URL to where the ledger listens."
_CONFLICT = "the server holds another event with the same seq"
_OTHER_END = "the server holds another end of this session"

T = TypeVar("T")


class _Rejected(msgspec.Struct):
    index: int
    code: str
    detail: str


class _Conflict(msgspec.Struct):
    seq: int


class _Receipt(msgspec.Struct):
    """What a sender needs of `ChunkReceipt`."""

    rejected: list[_Rejected]
    conflicts: list[_Conflict]
    high_seq: int | None
    missing: list[tuple[int, int]] = []


class _ResultReceipt(msgspec.Struct):
    conflict: bool


class Sender:
    """Sends a backlog over `api`, which must not try again by itself (`attempts_max=1`) and is this sender's alone.

    `now` gives seconds of any clock that runs on. `answered` counts what the server has dealt with.
    """

    def __init__(
        self,
        backlog: Backlog,
        api: Api,
        *,
        now: Callable[[], float] = time.monotonic,
        random: Random | None = None,
    ) -> None:
        self.answered = 0
        self._backlog = backlog
        self._api = api
        self._now = now
        self._random = random or Random()  # noqa: S311 — spreads retries
        self._resting: dict[str, tuple[int, float]] = {}  # session → failures in a row, when it is tried again

    def round(self) -> bool:
        """Sends a batch of each session of which something waits; False where there was nothing to do. What is new
        does not wait for the many that are only to be asked how they stand: a few of these follow in each round.

        Raises ApiError where the server is away, refuses this sender or asks it to wait."""
        now = self._now()
        due = [one for one in self._backlog.waiting() if self._resting.get(one.session_id, (0, 0.0))[1] <= now]
        doubted = [session for session in due if session.is_only_doubted][:DOUBTED_IN_A_ROUND_MAX]
        due = [session for session in due if not session.is_only_doubted] + doubted
        for session in due:
            self._send(session)
        return bool(due)

    def _send(self, session: Waiting) -> None:
        try:
            if not session.verified:
                self._verify(session)
            elif not session.opening_sent:
                self._open(session)
            elif session.sent_seq < session.high_seq:
                self._push(session)
            else:
                self._end(session)
        except ApiError as error:
            self._judge(session, error)
        else:
            self._resting.pop(session.session_id, None)
        self.answered += 1

    def _open(self, session: Waiting) -> None:
        """Opens the session and pushes its first batch, in one request."""
        opening = self._backlog.opening(session)
        if opening is None:
            self._backlog.refuse(session, "unknown_session", "the server does not know this session")
            return
        fields, events = payload_object(opening), self._batch(session)
        try:
            receipt = self._deliver(session, events, fields)
        except ApiError as error:
            if not _is_about_the_body(error) or not events:
                raise
            self._deliver(session, [], fields)  # if this goes well, it was one of the events
            self._backlog.opening_acknowledged(session)
        else:
            self._backlog.opening_acknowledged(session)
            self._received(session, events, receipt)

    def _push(self, session: Waiting) -> None:
        if events := self._batch(session):
            self._push_events(session, events)
        else:  # all that lies there is among the dead letters
            self._backlog.acknowledged(session, session.high_seq)

    def _push_events(self, session: Waiting, events: Sequence[NewEvent]) -> None:
        try:
            receipt = self._deliver(session, events)
        except ApiError as error:
            if not _is_about_the_body(error):
                raise
            if len(events) == 1:
                self._backlog.bury(session, [(events[0], error.code, error.detail)])
                self._backlog.acknowledged(session, events[0].seq)
                return
            middle = len(events) // 2
            self._push_events(session, events[:middle])
            self._push_events(session, events[middle:])
        else:
            self._received(session, events, receipt)

    def _deliver(
        self, session: Waiting, events: Sequence[NewEvent], opening: dict[str, Any] | None = None
    ) -> _Receipt:
        return _read(self._api.push(session.session_id, map(_wire, events), open=opening), _Receipt)

    def _received(self, session: Waiting, events: Sequence[NewEvent], receipt: _Receipt) -> None:
        by_seq = {event.seq: event for event in events}
        by_index = dict(enumerate(events))
        dead = [(by_index[row.index], row.code, row.detail) for row in receipt.rejected if row.index in by_index]
        dead += [(by_seq[row.seq], "conflict", _CONFLICT) for row in receipt.conflicts if row.seq in by_seq]
        if dead:
            self._backlog.bury(session, dead)
        if events:
            self._backlog.acknowledged(session, events[-1].seq)
        if receipt.missing and self._backlog.missing(session, receipt.missing):
            self._backlog.doubt_all()

    def _end(self, session: Waiting) -> None:
        event = self._backlog.end(session)
        if event is not None:
            said = payload_object(event.payload)
            at = None if event.at is None else format_instant(event.at)
            try:
                receipt = self._api.result(session.session_id, said["state"], said.get("summary"), at=at)
            except ApiError as error:
                if not _is_about_the_body(error):
                    raise
                self._backlog.bury(session, [(event, error.code, error.detail)])
            else:
                if _read(receipt, _ResultReceipt).conflict:
                    self._backlog.bury(session, [(event, "conflict", _OTHER_END)])
        self._backlog.end_acknowledged(session)

    def _verify(self, session: Waiting) -> None:
        """An empty chunk is answered with how the session stands."""
        high_seq = self._deliver(session, []).high_seq
        self._backlog.verified(session, -1 if high_seq is None else high_seq)

    def _judge(self, session: Waiting, error: ApiError) -> None:
        """What an error means for the session; raises it where it is none of this session's."""
        status = error.status
        if status is None or status in AGAIN or status in _NO_ENTRY or error.code in ("not_a_ledger", "not_found"):
            raise error
        if status >= 500:
            failures = self._resting.get(session.session_id, (0, 0.0))[0] + 1
            self._resting[session.session_id] = failures, self._now() + backoff_s(failures, self._random)
        elif session.opening_sent and error.code == "unknown_session" and self._backlog.opening(session):
            self._backlog.lost(session)
            if session.verified:
                self._backlog.doubt_all()  # so may others be
        else:
            self._backlog.refuse(session, error.code, error.detail)

    def _batch(self, session: Waiting) -> list[NewEvent]:
        return self._backlog.batch(session, bytes_max=BATCH_BYTES_MAX, events_max=BATCH_EVENTS_MAX)


def _is_about_the_body(error: ApiError) -> bool:
    """True where the ledger cannot bear something in the body; the others of a chunk may be well."""
    return error.status in _BODY and error.code != "not_a_ledger"


def _read(receipt: Json, type: type[T]) -> T:
    try:
        return msgspec.convert(receipt, type)
    except msgspec.ValidationError as error:
        raise ApiError(200, "not_a_ledger", f"an answer that is no receipt: {error}", _URL_HINT) from error


def _wire(event: NewEvent) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "seq": event.seq,
        "kind": event.kind,
        "actor": event.actor,
        "payload": msgspec.Raw(event.payload),
    }
    if event.at is not None:
        fields["at"] = format_instant(event.at)
    if event.extra is not None:
        fields = {**msgspec.json.decode(event.extra, type=dict[str, msgspec.Raw]), **fields}
    return fields
