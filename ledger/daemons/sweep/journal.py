"""The sweep's own bookkeeping: a session of events for each run, kept in an outbox file, and what they come to.

The file is all that a sweep remembers. It works alone; where a server is known, the same events go there, and the
server's pages tell the same story from them. Every method is durable when it returns.
"""

from __future__ import annotations

import hashlib
import shutil
import socket
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from ledger.client.outbox import NEXT_SEQ, Outbox
from ledger.client.saddle import Saddle, Session
from ledger.daemons.sweep.config import plain_name
from ledger.errors import LedgerError, StorageError, StorageFull
from ledger.events.content import content_digest
from ledger.events.decode import new_event
from ledger.events.kinds import DONE, FAILED, RESULT
from ledger.events.model import Recorded
from projections.fold import fold
from projections.incidents import REGISTERS, Registers
from projections.sweep import AGENT, INTERRUPTED, OK, QUIET, SWEEP_FINISHED, SWEEP_STARTED, SWEEPS, Run, Sweeps

ACTOR = "sweep"
KEY_CHARS_MAX = 1_000
SIDE_FILES = ("-wal", "-shm", ".sender")  # beside the outbox
SEND_S = 10.0

_EVENTS_AT_ONCE = 1_000
_KILLED = "killed before its end; the next run went on from there"

Fact = tuple[str, Mapping[str, Any]]  # kind, payload


class StateDamaged(StorageError):
    """The state cannot be read. The sweep stops: judging everything anew would file nothing and cost much."""

    code = "sweep_state_damaged"


class State(msgspec.Struct, frozen=True):
    """What the journal comes to."""

    sweeps: Sweeps = Sweeps()
    registers: Registers = Registers()


def read_state(path: Path) -> State:
    """The state without touching its file, or leaving anything beside it. Raises StateDamaged."""
    if not path.exists():
        return State()
    with tempfile.TemporaryDirectory(prefix="ledgerd-sweep-") as folder:
        copy = Path(folder) / path.name
        with damage_named(path):
            for suffix in ("", "-wal"):
                beside = path.with_name(path.name + suffix)
                if beside.exists():
                    shutil.copyfile(beside, copy.with_name(copy.name + suffix))
            with Outbox(copy) as outbox:
                return _state(outbox.kept())


class Journal:
    """The journal in the state file of `saddle`, for one register."""

    def __init__(self, saddle: Saddle, register: str, title: str, *, sends: bool = False) -> None:
        self._saddle = saddle
        self._register = register
        self._title = title
        self._sends = sends

    def state(self) -> State:
        """Raises StateDamaged."""
        with damage_named(self._saddle.outbox.path):
            return _state(self._saddle.outbox.kept())

    def begin(self, day: str, sweeps: Sweeps) -> RunJournal:
        """Opens the session of a run, on a task of its own; runs that were killed are said to have been."""
        for run in sweeps.unended():
            self._end_killed(run)
        task_id = self._task_id(day, sweeps)
        session = self._saddle.open_session(
            f"{task_id}-{uuid.uuid4().hex[:12]}",
            kept=True,
            task={"id": task_id, "title": f"Sweep of {day}: {self._title}"},
            agent=AGENT,
            host=socket.gethostname(),
        )
        run_journal = RunJournal(session, self._register)
        run_journal.record([(SWEEP_STARTED, {"register": self._register, "title": self._title})])
        return run_journal

    def send(self) -> LedgerError | None:
        """Tries to bring everything to the server, if one is known; why it could not, where that is known."""
        if not self._sends:
            return None
        self._saddle.flush(SEND_S, patient=False)
        return self._saddle.trouble

    def _end_killed(self, run: Run) -> None:
        status, headline = run.status or INTERRUPTED, run.headline or _KILLED
        _end(self._saddle.session(run.session_id), status, headline, {}, told=bool(run.status))

    def _task_id(self, day: str, sweeps: Sweeps) -> str:
        taken = {run.task_id for run in sweeps.runs.values()}
        host = plain_name(socket.gethostname())  # two hosts may have a register at the same path
        base, number = f"sweep-{self._register}-{host}-{day}", 1
        while (task_id := base if number == 1 else f"{base}-{number}") in taken:
            number += 1
        return task_id


class RunJournal:
    """The session of the run at hand."""

    def __init__(self, session: Session, register: str) -> None:
        self.register = register
        self._session = session

    @property
    def session_id(self) -> str:
        return self._session.id

    def record(self, facts: Sequence[Fact]) -> None:
        """Appends facts: all of them or none, where they are no more than a thousand."""
        _add(self._session, facts)

    def usage(self, counts: Mapping[str, Any]) -> None:
        if counts:
            self._session.usage(actor="judge", **counts)

    def finish(self, status: str, headline: str, counts: Mapping[str, int]) -> None:
        """The run is over; `status` is one of `projections.sweep`."""
        _end(self._session, status, headline, counts)


def plain_key(key: str) -> str:
    """A session's key as it is recorded: text that JSON keeps as it is, of bounded length. Equal keys stay equal."""
    text = key.encode("utf-8", "backslashreplace").decode()
    if len(text) <= KEY_CHARS_MAX:
        return text
    return f"{text[: KEY_CHARS_MAX - 65]}~{hashlib.sha256(text.encode()).hexdigest()}"


def _state(events: Iterable[Recorded]) -> State:
    events = list(events)
    for event in events:
        if content_digest(event.kind, event.actor, event.payload) != event.digest:
            raise ValueError(f"event {event.seq} of session {event.session_id} is not what was written")
    return State(fold(SWEEPS, SWEEPS.initial, events), fold(REGISTERS, REGISTERS.initial, events))


def _add(session: Session, facts: Sequence[Fact]) -> None:
    now = time.time_ns()
    events = [new_event(NEXT_SEQ, kind, ACTOR, payload, now) for kind, payload in facts]
    for start in range(0, len(events), _EVENTS_AT_ONCE):
        session.add(events[start : start + _EVENTS_AT_ONCE])


def _end(session: Session, status: str, headline: str, counts: Mapping[str, int], *, told: bool = False) -> None:
    """Says how a run ended and the state that this is, in one step. `told`: the first was said before."""
    finished = (SWEEP_FINISHED, {"status": status, "headline": headline, **counts})
    result = (RESULT, {"state": DONE if status in (OK, QUIET) else FAILED, "summary": headline})
    _add(session, [result] if told else [finished, result])


@contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Says of a state that cannot be read how the sweep goes on without it."""
    try:
        yield
    except StorageFull:
        raise
    except (StorageError, OSError, ValueError) as error:
        why = error.detail if isinstance(error, StorageError) else str(error)
        raise StateDamaged(
            f"the state {path} cannot be used: {why}",
            hint=f"Put a copy back; or move {path.name}, {path.name}-wal and {path.name}-shm away: the sessions in"
            " state.seen_list are not judged again, and where there is no such list the next run is a first run.",
        ) from error
