"""A loop's own session in the project's outbox: the truth about the loop, whether or not a server can be reached.

The state is folded by the projection that the server's page is made of. Every decision is a conditional append: load,
fold, decide, append behind the last seq that was seen; whoever was overtaken decides again.
"""

from __future__ import annotations

import re
import socket
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from ledger.client.outbox import NEXT_SEQ
from ledger.client.redaction import redact_payload
from ledger.client.saddle import Saddle, Session
from ledger.daemons.agent.outputs import with_payload
from ledger.daemons.loop.config import LoopConfig
from ledger.daemons.loop.deciding import Halt
from ledger.daemons.loop.folders import LoopFolder
from ledger.errors import StorageError, StreamMoved
from ledger.events import kinds
from ledger.events.content import given, payload_object
from ledger.events.decode import new_event
from ledger.events.model import END_SEQ, NewEvent, Recorded
from projections.fold import fold
from projections.loop import LOOPS
from projections.loop_state import AGENT, HALTED, ITS_AGENTS, RESUMED, TASK_SET, TICK_STARTED, Loop, Loops

ACTOR = "loop"
RACES_MAX = 100
_KEPT_AS_IT_IS = (TASK_SET, TICK_STARTED)  # which agents are told, or digests that are compared with

New = tuple[str, dict[str, Any]]  # an event to be: kind and payload
Decide = Callable[[Loop], Sequence[New]]


class Journal:
    """The session of one loop, and that of its agents. Raises StorageError where the outbox fails."""

    def __init__(self, saddle: Saddle, session: Session, agents: Session) -> None:
        self.session = session
        self.agents = agents
        self._saddle = saddle
        self._loops = Loops()
        self._seen_seq = -2  # not even the opening
        self._agents_seq = -2

    @property
    def outbox(self) -> Any:
        return self._saddle.outbox

    @property
    def loop(self) -> Loop:
        """As it stood when it was last read, or added to."""
        return next(iter(self._loops.loops.values()))

    def read(self) -> Loop:
        """The loop as it stands now, but for what its agents cost: `read_usage`."""
        self._take(self.session.kept(after_seq=self._seen_seq))
        return self.loop

    def read_usage(self) -> Loop:
        """With what its agents have cost so far."""
        events = self.agents.kept(kinds=(kinds.SESSION_OPENED, kinds.USAGE), after_seq=self._agents_seq)
        self._loops = fold(LOOPS, self._loops, events)
        self._agents_seq = max([self._agents_seq, *(event.seq for event in events)])
        return self.loop

    def add(self, decide: Decide) -> bool:
        """Appends what `decide` makes of the loop as it stands, whole or not at all; False if that is nothing. It is
        asked again where somebody else was faster."""
        for _ in range(RACES_MAX):
            events = [_event(kind, payload) for kind, payload in decide(self.loop)]
            if not events:
                return False
            try:
                self.session.add(events, expected_seq=max(self._seen_seq, -1))
            except StreamMoved as moved:
                self.read()
                self._seen_seq = max(self._seen_seq, moved.last_seq)  # the last ones may not be kept any more
                continue
            self.read()
            return True
        raise StorageError(f"session {self.session.id!r} moves faster than it can be appended to")

    def _take(self, events: Sequence[Recorded]) -> None:
        self._loops = fold(LOOPS, self._loops, events)
        self._seen_seq = max([self._seen_seq, *(event.seq for event in events if event.seq < END_SEQ)])


def open_journal(saddle: Saddle, folder: LoopFolder, config: LoopConfig | None = None) -> Journal | None:
    """The journal of the loop. Where there is none yet, it is made for `config`; without one None is given."""
    session_id = _find(saddle, folder.name)
    if session_id is None:
        if config is None:
            return None
        session_id = new_session(saddle, folder, config)
    session = saddle.session(session_id)
    opening = payload_object(session.kept(kinds=(kinds.SESSION_OPENED,))[0].payload)
    agents = saddle.open_session(
        f"{session_id}-agents",
        kept=True,
        agent=ITS_AGENTS,
        parent_session_id=session_id,
        **{name: opening[name] for name in ("task", "cwd", "host")},
    )
    journal = Journal(saddle, session, agents)
    journal.read()
    return journal


def new_session(saddle: Saddle, folder: LoopFolder, config: LoopConfig) -> str:
    """Opens the session of a loop, on a task of its own."""
    session_id = f"loop-{folder.name}-{uuid.uuid4().hex[:8]}"
    task = {
        "id": session_id,
        "title": f"Loop {folder.name}",
        "project_id": config.project_id,
        "goal_id": config.goal_id,
    }
    saddle.open_session(
        session_id, kept=True, agent=AGENT, task=given(task), cwd=str(folder.project), host=socket.gethostname()
    )
    return session_id


def halted(halt: Halt, **more: Any) -> list[New]:
    """The events of a halt: the task stands suspended, with the reason in words."""
    payload = {
        "reason": str(halt.reason),
        "halt_reason": str(halt.halt_reason or halt.reason),
        "detail": halt.detail,
        "tick": halt.tick,
        "files": list(halt.files) or None,
        **more,
    }
    summary = f"{halt.reason.sentence} {halt.detail}".strip()
    result = {"state": kinds.SUSPENDED, "summary": f"{payload['halt_reason']}: {summary}"}
    return [(HALTED, given(payload)), (kinds.RESULT, result)]


def resumed(**more: Any) -> list[New]:
    return [(RESUMED, given(more)), (kinds.RESULT, {"state": kinds.WORKING, "summary": "resumed"})]


def _event(kind: str, payload: dict[str, Any]) -> NewEvent:
    """Without the secrets that an agent, a gate or loop.json may have said."""
    event = new_event(NEXT_SEQ, kind, ACTOR, payload, time.time_ns())
    return event if kind in _KEPT_AS_IT_IS else with_payload(event, redact_payload(event.payload))


def _find(saddle: Saddle, name: str) -> str | None:
    """The session of the loop of that name: the one opened last, should there be several."""
    wanted = re.compile(rf"loop-{re.escape(name)}-[0-9a-f]{{8}}")
    found = [
        event.session_id
        for event in saddle.outbox.kept(kinds=(kinds.SESSION_OPENED,))
        if wanted.fullmatch(event.session_id) and payload_object(event.payload).get("agent") == AGENT
    ]
    return found[-1] if found else None
