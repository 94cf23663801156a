"""Random histories of a ledger: goals and tasks, sessions that work on them, and how their events are delivered."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from hypothesis import strategies as st

from ledger.events.content import content_digest
from ledger.events.kinds import RESULT, TERMINAL_STATES
from ledger.events.model import END_SEQ, OPENING_SEQ, NewEvent, Recorded
from ledger.store.base import Opening, Write
from ledger.store.memory import MemoryStore
from projections.fold import fold
from projections.goal import ROOT, Root

NOW_NS = 1_700_000_000 * 10**9
WORDS = ("on it", "half way", "stuck", "which one?")


@dataclass(frozen=True)
class Step:
    """One append: a decision, an opening, or a chunk of a session."""

    stream: str
    root: str
    task_id: str | None
    events: tuple[NewEvent, ...] = ()
    opening: NewEvent | None = None

    @property
    def is_chunk(self) -> bool:
        return self.opening is None and not self.stream.startswith("@")


@dataclass
class Session:
    name: str
    task_id: str
    script: dict[int, NewEvent]
    pushed: set[int] = field(default_factory=set)


def event_of(seq: int, kind: str, payload: dict[str, Any], actor: str = "model", at: int | None = None) -> NewEvent:
    text = json.dumps(payload).encode()
    return NewEvent(seq, kind, actor, text, content_digest(kind, actor, text), at)


def is_terminal(event: NewEvent | Recorded) -> bool:
    return event.kind == RESULT and json.loads(event.payload)["state"] in TERMINAL_STATES


class Author:
    """Writes one history, one step after the other. Every choice is drawn from `random`, so it can be repeated."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.steps: list[Step] = []
        self.sessions: list[Session] = []
        self.roots: dict[str, str] = {}  # task_id → root
        self._own_seqs: dict[str, int] = {}
        self._run_task_id: str | None = None

    def write(self, length: int) -> list[Step]:
        self._found()
        moves = [self._open, self._push, self._push, self._push, self._end, self._decide]
        self._open()
        for _ in range(length):
            self.random.choice(moves)()
        for session in self.sessions:
            if self.random.random() < 0.7:
                self._push_rest(session)
        return self.steps

    def _found(self) -> None:
        if self.random.random() < 0.6:
            self._run_task_id = "1"
            self._decided("@goal/7", "goal/7", None, "goal.created", {"id": "7", "title": "Goal"})
            self._decided("@goal/7", "goal/7", None, "goal.started", {"run_task_id": "1"})
            self._task("1", "goal/7", "goal_run")
        for number in range(2, 2 + self.random.randint(0 if self.roots else 1, 2)):
            in_goal = self._run_task_id is not None and self.random.random() < 0.6
            self._task(str(number), "goal/7" if in_goal else f"task/{number}", "task")

    def _task(self, task_id: str, root: str, kind: str) -> None:
        self.roots[task_id] = root
        payload = {"id": task_id, "kind": kind, "title": f"Task {task_id}"}
        self._decided(f"@task/{task_id}", root, task_id, "task.created", payload)

    def _decided(self, stream: str, root: str, task_id: str | None, kind: str, payload: dict[str, Any]) -> None:
        seq = self._own_seqs[stream] = self._own_seqs.get(stream, -1) + 1
        self.steps.append(Step(stream, root, task_id, (event_of(seq, kind, payload, "owner"),)))

    def _decide(self) -> None:
        if self._run_task_id is not None and self.random.random() < 0.3:
            kind = self.random.choice(["goal.cancelled", "goal.reopened"])
            self._decided("@goal/7", "goal/7", None, kind, {"reason": "changed", "run_task_id": "1"})
            return
        task_id = self.random.choice(sorted(self.roots))
        kinds = ["task.requeued"] * 4 + ["task.cancelled", "task.blocked", "task.unblocked", "task.claimed"]
        reason = {"reason": self.random.choice(WORDS)}
        self._decided(f"@task/{task_id}", self.roots[task_id], task_id, self.random.choice(kinds), reason)

    def _open(self) -> None:
        name = f"s{len(self.sessions)}"
        original = self.random.choice(self.sessions) if self.sessions and self.random.random() < 0.5 else None
        task_id = self.random.choice(sorted(self.roots)) if original is None else original.task_id
        payload: dict[str, Any] = {"task_id": task_id, "saddle": "anvil"}
        if self.sessions and self.random.random() < 0.2:
            payload["parent_session_id"] = self.random.choice(self.sessions).name
        if self.random.random() < 0.3:
            payload["same_run_as"] = f"s{self.random.randint(0, len(self.sessions) + 1)}"
        script = self._script(0) if original is None else original.script | self._script(len(original.script) * 3)
        self.sessions.append(Session(name, task_id, script))
        opening = event_of(OPENING_SEQ, "session.opened", payload, "anvil")
        self.steps.append(Step(name, self.roots[task_id], task_id, opening=opening))

    def _script(self, first_seq: int) -> dict[int, NewEvent]:
        seqs = sorted(self.random.sample(range(first_seq, first_seq + 12), self.random.randint(0, 8)))
        return {seq: self._event(seq) for seq in seqs}

    def _event(self, seq: int) -> NewEvent:
        words = self.random.choice(WORDS)
        kinds: list[tuple[str, dict[str, Any]]] = [
            ("comment", {"body": words}),
            ("error", {"message": words}),
            ("message", {"role": "assistant", "text": words}),
            ("tool_call", {"tool": "bash", "args": {"command": words}}),
            (
                "usage",
                {"message_id": self.random.choice(["m1", "m2", None]), "output_tokens": seq, "cost_usd": 0.1},
            ),
            ("waiting", {"question": words}),
            ("result", {"state": self.random.choice(["working", "waiting", "suspended"]), "summary": words}),
            ("result", {"state": "working"}),
        ]
        kind, payload = self.random.choice(kinds)
        if kind in ("tool_call", "waiting", "result", "error") and self.random.random() < 0.3:
            payload["call_id"] = self.random.choice(["c1", "c2"])
        at = self.random.choice([None, NOW_NS - 10**9, NOW_NS + seq])
        return event_of(seq, kind, payload, at=at)

    def _push(self) -> None:
        session = self.random.choice(self.sessions)
        waiting = sorted(session.script.keys() - session.pushed)
        if waiting:
            self._chunk(session, self.random.sample(waiting, self.random.randint(1, len(waiting))))

    def _push_rest(self, session: Session) -> None:
        waiting = sorted(session.script.keys() - session.pushed)
        if waiting:
            self._chunk(session, waiting)

    def _chunk(self, session: Session, seqs: list[int]) -> None:
        session.pushed.update(seqs)
        events = tuple(session.script[seq] for seq in seqs)
        self.steps.append(Step(session.name, self.roots[session.task_id], session.task_id, events))

    def _end(self) -> None:
        session = self.random.choice(self.sessions)
        seq = self.random.choice([END_SEQ, END_SEQ, 100, 101])
        if seq in session.pushed:
            return
        session.pushed.add(seq)
        state = self.random.choice(sorted(TERMINAL_STATES))
        payload = {"state": state, "summary": self.random.choice(["no", "good"])}
        event = event_of(seq, "result", payload, "anvil")
        self.steps.append(Step(session.name, self.roots[session.task_id], session.task_id, (event,)))


@dataclass(frozen=True)
class History:
    """One history; its seed and length make it again."""

    seed: int
    length: int
    steps: list[Step] = field(repr=False)


SEEDS = st.integers(0, 2**32 - 1)


def written(seed: int, length: int) -> History:
    return History(seed, length, Author(Random(seed)).write(length))


def histories() -> st.SearchStrategy[History]:
    return st.builds(written, SEEDS, st.integers(0, 24))


def delivered(steps: list[Step], store: MemoryStore | None = None) -> MemoryStore:
    """A store that was given the steps, at one and the same moment by its clock."""
    store = MemoryStore(clock=lambda: NOW_NS) if store is None else store
    for step in steps:
        opening = Opening(step.root, step.task_id, "anvil", event=step.opening)
        run(store.append([Write(step.stream, step.events, opening=opening)]))
    return store


def log_of(store: MemoryStore) -> list[Recorded]:
    events: list[Recorded] = run(store.read_feed((0,) * store.buckets, limit=10**6))
    return events


def roots_of(events: list[Recorded]) -> dict[str, Root]:
    """The folded state of every root."""
    return {
        name: fold(ROOT, ROOT.initial, (event for event in events if event.root == name))
        for name in sorted({event.root for event in events})
    }


def redelivered(steps: list[Step], seed: int) -> list[Step]:
    """The same steps, with chunks split, and with what was delivered before delivered again: repeated, in parts,
    merged and in any order."""
    random = Random(seed)
    told: list[Step] = []
    for step in steps:
        cut = random.randint(0, len(step.events))
        if step.is_chunk and 0 < cut < len(step.events):
            told += [replace(step, events=step.events[:cut]), replace(step, events=step.events[cut:])]
        else:
            told.append(step)
        while random.random() < 0.4:
            told.append(_again(random.choice(told), told, random))
    return told


def _again(step: Step, told: list[Step], random: Random) -> Step:
    events = [event for one in told if one.stream == step.stream for event in one.events]
    if step.stream.startswith("@") or not events:
        return step
    return replace(step, events=tuple(random.choices(events, k=random.randint(1, len(events)))))


def shuffled(steps: list[Step], seed: int) -> list[Step]:
    """The same steps, with the events of each session dealt out anew over its chunks. Terminal pushes stay where
    they are, so the same one is recorded first."""
    random = Random(seed)
    pools: dict[str, list[NewEvent]] = {}
    for step in steps:
        if step.is_chunk:
            pools.setdefault(step.stream, []).extend(event for event in step.events if not is_terminal(event))
    for pool in pools.values():
        random.shuffle(pool)
    told = []
    for step in steps:
        if step.is_chunk:
            pool = pools[step.stream]
            step = replace(step, events=tuple(event if is_terminal(event) else pool.pop() for event in step.events))
        told.append(step)
    return told


def run(coroutine: Any) -> Any:
    """The result of a coroutine of the memory store, which never waits for anything."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("the memory store waited")
