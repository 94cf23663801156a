"""What a daemon embeds: sessions that are emitted to without ever waiting for the server.

with Saddle(url, token, outbox="outbox.db") as saddle:
    session = saddle.open_session(task={"title": "Fix the parser"}, agent="my-agent")
    session.emit("tool_call", {"tool": "run_command", "args": {"command": "make test"}})
    session.comment("All 240 cases pass.")
    session.result("done", "The parser is fixed.")
"""

from __future__ import annotations

import atexit
import time
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ledger.client.api import Api, server_from_environment
from ledger.client.draining import Drain
from ledger.client.outbox import BYTES_MAX, NEXT_SEQ, Added, Backlog, Outbox, default_path
from ledger.errors import InvalidField, LedgerError
from ledger.events import kinds
from ledger.events.decode import new_event
from ledger.events.model import NO_EVENTS, NewEvent, Recorded
from ledger.events.times import parse_instant

CLOSE_S = 1.0

_POLL_S = 0.02


class Session:
    """A session in an outbox. Every call is durable when it returns, whether or not the server can be reached.

    Times (`at`) are RFC 3339 texts or epoch numbers, by default now. All raise OutboxFull where nothing more can be
    kept, and StorageError where the outbox fails.
    """

    def __init__(self, saddle: Saddle, session_id: str) -> None:
        self.id = session_id
        self._saddle = saddle

    @property
    def outbox_path(self) -> Path:
        """Where it is kept: LEDGERD_OUTBOX for a program that is to find it."""
        return self._saddle.outbox.path

    def emit(
        self, kind: str, payload: object = None, *, actor: str = "model", at: str | int | float | None = None
    ) -> int:
        """Appends one event and gives its seq. Raises TypeError for a payload that JSON has no form for."""
        return self.add([_event(kind, actor, payload, at)]).seqs[0]

    def add(self, events: Iterable[NewEvent], *, expected_seq: int | None = None) -> Added:
        """Appends many events in one transaction, with the seqs that they carry or NEXT_SEQ. With `expected_seq` only
        if that is the last one so far; else raises StreamMoved."""
        added = self._saddle.outbox.add(self.id, list(events), expected_seq=expected_seq)
        self._saddle.wake()
        return added

    def comment(self, body: str, *, actor: str = "model") -> int:
        """A remark for people."""
        return self.emit(kinds.COMMENT, {"body": body}, actor=actor)

    def usage(self, *, actor: str = "harness", **counts: Any) -> int:
        """Tokens and cost: `message_id`, `model`, `input_tokens`, `output_tokens`, `cost_usd` and the like. The last
        report of a message id counts."""
        return self.emit(kinds.USAGE, counts, actor=actor)

    def result(self, state: str, summary: str | None = None, *, actor: str = "harness") -> bool:
        """Pushes a state. Of several terminal ones the first counts: False for the others. Goes out after all that
        was emitted before it."""
        if state not in kinds.STATES:
            raise InvalidField("state", f"{state!r} is none of {', '.join(sorted(kinds.STATES))}")
        event = _event(kinds.RESULT, actor, {"state": state, "summary": summary}, None)
        if state not in kinds.TERMINAL_STATES:
            self.add([event])
            return True
        first = self._saddle.outbox.end(self.id, event)
        self._saddle.wake()
        return first

    def kept(self, *, kinds: Sequence[str] = (), after_seq: int = NO_EVENTS) -> list[Recorded]:
        """What was emitted to a session that was opened as `kept`, by anyone through this outbox: all of it or only
        some `kinds`, behind `after_seq`."""
        return self._saddle.outbox.kept(self.id, kinds=kinds, after_seq=after_seq)

    def last_state(self) -> str | None:
        """The state that was pushed last, by anyone through this outbox."""
        return self._saddle.outbox.last_state(self.id)


class Work(msgspec.Struct, frozen=True):
    """What an ask was given: the task as the server describes it, and the session that is open on it."""

    task: dict[str, Any]
    session: Session


class Saddle:
    """A daemon's seat: an outbox, and a thread that keeps it empty. A context manager; threads may share it.

    `url` and `token` are found as by `server_from_environment`, `outbox` as by `default_path`. With `drain=False`
    nothing is sent from here: another process with the same outbox does it. Importing and making it costs little;
    httpx is loaded in the thread. Not to be carried over a fork.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        outbox: str | Path | None = None,
        drain: bool = True,
        bytes_max: int = BYTES_MAX,
        timeout_s: float = 30,
    ) -> None:
        found_url, found_token = server_from_environment()
        self._url, self._token = url or found_url, found_token if token is None else token
        self._timeout_s = timeout_s
        self._bytes_max = bytes_max
        self.outbox = Outbox(outbox or default_path(), bytes_max=bytes_max)
        self._drain: Drain | None = None
        if drain:
            self._drain = Drain(self.outbox.path, bytes_max, lambda: self.api(attempts_max=1)).__enter__()
            atexit.register(self.close)

    def __enter__(self) -> Saddle:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def api(self, *, attempts_max: int = 5, timeout_s: float | None = None) -> Api:
        """A client of the same server, to be closed by the caller. Raises InvalidField for a URL that is none."""
        timeout_s = self._timeout_s if timeout_s is None else timeout_s
        return Api(self._url, self._token, timeout_s=timeout_s, attempts_max=attempts_max)

    def open_session(self, session_id: str | None = None, *, kept: bool = False, **fields: Any) -> Session:
        """Opens a session under `task_id` or an ad hoc `task`; the fields are those of `OpenIn`. Needs no server. A
        session that is open already is given again. A `kept` one can be read back for good. Raises SessionElsewhere,
        InvalidField."""
        session_id = session_id or uuid.uuid4().hex
        self.outbox.open_session(session_id, {"contiguous": True, **fields}, kept=kept)
        self.wake()
        return Session(self, session_id)

    def session(self, session_id: str) -> Session:
        """A session that was opened through this outbox, by whatever process. Raises NotFound when first used where
        there is none."""
        return Session(self, session_id)

    def ask(self, *, wait_s: float = 0, **fields: Any) -> Work | None:
        """Asks the server for work, for up to `wait_s` seconds: None where there is none. A task that was claimed by
        an ask whose answer was lost, in a crash too, is given to the next one. Raises ApiError."""
        session_id = self.outbox.begin_ask(uuid.uuid4().hex)
        try:
            with self.api(attempts_max=1) as api:
                answer = api.ask(wait_s=wait_s, session_id=session_id, **fields)
        except BaseException:
            self.outbox.end_ask(session_id, answered=False)
            raise
        if answer is None:
            self.outbox.end_ask(session_id, answered=True)
            return None
        self.outbox.adopt(session_id, str(answer["task"]["id"]))
        return Work(answer["task"], Session(self, session_id))

    @property
    def trouble(self) -> LedgerError | None:
        """Why nothing goes out at present, as far as this process knows."""
        return self._drain.trouble if self._drain else None

    def wake(self) -> None:
        """Tells the sender that something was emitted."""
        if self._drain:
            self._drain.wake()

    def flush(self, timeout_s: float = 10, *, session_id: str | None = None, patient: bool = True) -> bool:
        """Waits until nothing waits any more, of one session or of all, for at most `timeout_s`: True if so. Unless
        `patient`, the first trouble ends the waiting."""
        deadline = time.monotonic() + timeout_s
        backlog = Backlog(self.outbox.path, bytes_max=self._bytes_max)
        try:
            self.wake()
            while not backlog.is_drained(session_id):
                if time.monotonic() >= deadline or (self.trouble and not patient):
                    return False
                time.sleep(_POLL_S)
            return True
        finally:
            backlog.close()

    def close(self, timeout_s: float = CLOSE_S) -> None:
        """Tries for at most `timeout_s` to send what waits, and leaves the rest on disk for the next one."""
        if self._drain:
            deadline = time.monotonic() + timeout_s
            self.flush(timeout_s, patient=False)
            self._drain.stop(max(deadline - time.monotonic(), _POLL_S))
            self._drain = None
            atexit.unregister(self.close)
        self.outbox.close()


def _event(kind: str, actor: str, payload: object, at: object) -> NewEvent:
    instant = time.time_ns() if at is None else parse_instant(at)
    return new_event(NEXT_SEQ, kind, actor, {} if payload is None else payload, instant)
