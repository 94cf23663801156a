"""Tells an outbox what lies in the spool: each record's session, opened where it is new, and its events. Secrets are
taken out of a record before anything is made of it.

Telling a record again changes nothing: a key is made of the record's tick alone. Whether a state is news depends on
what was told before; what is told of it is the last event of its record, so that no other key moves.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ledger.client.outbox import Outbox
from ledger.client.redaction import redact_payload
from ledger.errors import MalformedBody
from ledger.events import kinds
from ledger.events.content import parse_payload
from ledger.events.decode import new_event
from ledger.events.model import NewEvent
from ledger.events.repair import mend
from ledger.events.times import format_instant
from ledger.hooks import claude_code, codex, gemini
from ledger.hooks.saying import Hook, Place, Told, text
from ledger.hooks.spool import TICK_NS
from ledger.transcripts import formats
from ledger.transcripts.bounding import bounded
from ledger.transcripts.delivering import project_of
from ledger.transcripts.model import NoSession, Said, checked_id, given, title_of

SUFFIX = ".hook"
EVENTS_OF_RECORD_MAX = 10
HOLD_S = 10.0  # how long the start of a session waits for the prompt that names its task


class Agent(Protocol):
    """What a module of an agent gives."""

    LABEL: str

    def place(self, hook: Hook) -> Place: ...

    def told_by(self, hook: Hook) -> Told: ...


AGENTS: dict[str, tuple[Agent, str]] = {
    formats.CLAUDE_CODE.agent: (claude_code, formats.CLAUDE_CODE.prefix),
    formats.CODEX.agent: (codex, formats.CODEX.prefix),
    formats.GEMINI.agent: (gemini, formats.GEMINI.prefix),
}


class Record(NamedTuple):
    """What one hook left in the spool. `within` is the session of `ledgerd run` that the agent was started in."""

    agent: str
    tick: int
    within: str
    body: bytes


class BadRecord(Exception):
    """A record that tells nothing. The text says why."""


class Teller:
    """Writes to `outbox`; `host` is where the agents run, `now` gives seconds of any clock that runs on. Methods
    raise StorageError where the outbox fails; then the same is to be told again."""

    def __init__(self, outbox: Outbox, *, host: str, now: Callable[[], float] = time.monotonic) -> None:
        self._outbox = outbox
        self._host = host
        self._now = now
        self._states: dict[str, str] = {}  # session → the state that was told last
        self._opened: set[str] = set()
        self._held: dict[str, tuple[Record, float]] = {}  # session → its start, until when it waits

    @property
    def is_holding(self) -> bool:
        """Whether a record waits in memory, and so has to stay in the spool."""
        return bool(self._held)

    def tell(self, record: Record) -> None:
        """Raises BadRecord."""
        agent, _ = AGENTS[record.agent]
        hook = _hook_of(record)
        place = _checked(agent.place(hook))
        session_id = place.session_id + SUFFIX
        if _names_no_work(hook, place) and not self._is_open(session_id):
            self._held.setdefault(session_id, (record, self._now() + HOLD_S))
            return
        held = self._held.get(session_id)
        if held is not None:
            self._write(held[0], _hook_of(held[0]), place)
            del self._held[session_id]
        self._write(record, hook, place)

    def release(self) -> None:
        """Tells the starts of sessions that no prompt has followed in time."""
        for session_id, (record, until) in list(self._held.items()):
            if until <= self._now():
                hook = _hook_of(record)
                self._write(record, hook, _checked(AGENTS[record.agent][0].place(hook)))
                del self._held[session_id]

    def _write(self, record: Record, hook: Hook, place: Place) -> None:
        agent, _ = AGENTS[record.agent]
        session_id = place.session_id + SUFFIX
        self._open(session_id, record, hook, place)
        told = agent.told_by(hook)
        said = [*told.said, *self._news(session_id, told)][:EVENTS_OF_RECORD_MAX]
        events, end = [], None
        for n, one in enumerate(said):
            event = _event(record.tick, n, one)
            if one[0] == kinds.RESULT and one[2]["state"] in kinds.TERMINAL_STATES:
                end = event
            else:
                events.append(event)
        self._outbox.add(session_id, events)
        if end is not None:
            self._outbox.end(session_id, end)
        self._states[session_id] = next(filter(None, map(_state, reversed(said))), self._states.get(session_id, ""))

    def _news(self, session_id: str, told: Told) -> list[Said]:
        if told.state is None or _state(told.state) == self._states.get(session_id):
            return []
        return [told.state]

    def _is_open(self, session_id: str) -> bool:
        return session_id in self._opened or self._outbox.has_session(session_id)

    def _open(self, session_id: str, record: Record, hook: Hook, place: Place) -> None:
        if self._is_open(session_id):
            return
        if place.parent is not None:
            self._open(place.parent + SUFFIX, record, hook, Place(place.parent))
        self._outbox.open_session(session_id, self._opening(record, hook, place))
        self._opened.add(session_id)

    def _opening(self, record: Record, hook: Hook, place: Place) -> dict[str, Any]:
        """A subagent works on the task of its parent, and an agent inside `ledgerd run` on the task of that."""
        fields: dict[str, Any] = {
            "same_run_as": place.session_id,
            "agent": record.agent,
            "model": text(hook, "model") or None,
            "cwd": text(hook, "cwd") or None,
            "host": self._host,
            "at": format_instant(record.tick * TICK_NS),
        }
        if place.parent is not None:
            fields["parent_session_id"] = place.parent + SUFFIX
        elif record.within and self._outbox.has_session(record.within):
            fields["same_run_as"] = record.within
        else:
            fields["task"] = self._task(record, hook, place)
        return given(fields)

    def _task(self, record: Record, hook: Hook, place: Place) -> dict[str, Any]:
        """The one that the agent's transcript would get. Its title is what a person asked for."""
        agent, prefix = AGENTS[record.agent]
        project_id = project_of(text(hook, "cwd"))
        where = f" in {project_id}" if project_id else ""
        title = title_of(place.prompt or "") or f"{agent.LABEL}{where}"
        return given({"id": f"{prefix}-{place.session_id}", "title": title, "project_id": project_id})


def _hook_of(record: Record) -> Hook:
    try:
        hook = parse_payload(redact_payload(mend(record.body)[0]))
    except (ValueError, MalformedBody, RecursionError) as error:
        raise BadRecord(f"the input is no JSON: {error}") from error
    if not isinstance(hook, dict):
        raise BadRecord("the input is no object")
    return hook


def _checked(place: Place) -> Place:
    try:
        checked_id(place.session_id, Path("input"))
        if place.parent is not None:
            checked_id(place.parent, Path("input"))
    except NoSession as error:
        raise BadRecord(str(error)) from error
    return place


def _names_no_work(hook: Hook, place: Place) -> bool:
    return hook.get("hook_event_name") == "SessionStart" and place.prompt is None and place.parent is None


def _event(tick: int, n: int, said: Said) -> NewEvent:
    kind, actor, payload = said
    return new_event(tick * EVENTS_OF_RECORD_MAX + n, kind, actor, bounded(payload)[0], tick * TICK_NS)


def _state(said: Said) -> str:
    kind, _, payload = said
    if kind == kinds.WAITING:
        return kinds.WAITING
    return str(payload["state"]) if kind == kinds.RESULT else ""
