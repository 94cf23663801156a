"""A tick: one move of the run, decided by the machine, appended behind what was seen.

Safe at any point of a crash. A turn's start is on the stream before the agent is started, so that a turn without a
finish, once its runner is gone, is known to be interrupted and is never silently done again. A reply is on the stream
before it moves anything, and what it moves is appended in one piece: a runner that dies in between leaves an answered
prompt, which the next tick finds. Two runners: whoever appends second finds that the stream has moved, reads on and
decides anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from ledger.client.api import ApiError
from ledger.client.redaction import redact
from ledger.daemons.remediation import blocking, machine
from ledger.daemons.remediation.journal import Journal
from ledger.daemons.remediation.leasing import Connect, Keeping, Lease
from ledger.daemons.remediation.machine import Next
from ledger.daemons.remediation.repositories import Repositories
from ledger.errors import StreamMoved
from projections.fold import fold
from projections.remediation import facts, words
from projections.remediation.evolving import RUN
from projections.remediation.facts import Fact
from projections.remediation.state import Prompt, Reply, Run

ERROR_CHARS_MAX = 4_000
NO_COMMIT = "(the project had no commit when the step began: git cannot say what was changed since)"
_TRIES = 20
_UNUSABLE = (400, 413, 422)  # the server will never take it: asking again would be no use


class Stopping(Protocol):
    def is_set(self) -> bool: ...


class Workers(Protocol):
    """The agents."""

    def folder(self, project: str) -> Path:
        """Where a project lies. Raises LedgerError for one that is not configured here."""

    def run(self, run: Run, prompt: Prompt, stop: Stopping) -> Reply:
        """Gives the prompt to its agent, and takes the reply; `stop` ends it."""

    def left_behind(self, run: Run, prompt: Prompt) -> Reply | None:
        """The reply to a turn that had come to its end on this host before its runner could say so."""

    def ended(self, run: Run) -> None:
        """The run has ended: nothing is said in its conversations any more."""


class Never:
    """Never asks to stop."""

    def is_set(self) -> bool:
        return False


class Runner:
    """One runner. `name` is its own: no other runner ever has it. `tool_project` is where repairs take place, `keep`
    opens a second journal for the lease while an agent works (None: the lease is not renewed meanwhile)."""

    def __init__(
        self,
        journal: Journal,
        workers: Workers,
        repositories: Repositories,
        *,
        name: str,
        tool_project: str | None = None,
        lease_s: float = 120.0,
        clock: Callable[[], int] = time.time_ns,
        stop: Stopping | None = None,
        keep: Connect | None = None,
    ) -> None:
        self.name = name
        self.run = Run()
        self._journal = journal
        self._workers = workers
        self._repositories = repositories
        self._tool_project = tool_project
        self._lease = Lease(name, clock, lease_s)
        self._stop = stop or Never()
        self._keep = keep

    def tick(self) -> str:
        """One move, or none: gives the tick's result. Raises ApiError where the server does not answer or does not
        let us in; whatever else goes wrong in it blocks the run."""
        try:
            return self._again(self._tick)
        except Exception as error:
            away = isinstance(error, ApiError) and error.status not in _UNUSABLE
            if away or isinstance(error, StreamMoved) or not self.run.is_active:
                raise
            text = redact(f"{type(error).__name__}: {error}")[:ERROR_CHARS_MAX]
            return self._again(lambda: self._crashed(text))

    def leave(self) -> None:
        """Gives the lease back, so that another runner need not wait for it to expire."""
        held = self.run.lease
        if held is not None and held.runner == self.name:
            try:
                self._append([facts.lease_released(self.name)])
            except (StreamMoved, ApiError):
                return  # it expires by itself

    def _again(self, attempt: Callable[[], str]) -> str:
        """Decides again, on what it finds, whenever the stream has moved meanwhile."""
        for _ in range(_TRIES - 1):
            try:
                return attempt()
            except StreamMoved:
                continue
        return attempt()

    def _tick(self) -> str:
        self._load()
        if self.run.is_active and self._journal.is_over(self.run.id):  # cancelled: there may be another by now
            self._workers.ended(self.run)
            self.run = Run()
            self._load()
        todo = self._next()
        if todo in (Next.NOTHING, Next.WAIT):
            return machine.IDLE if todo is Next.NOTHING else machine.WAITING
        if self._lease.is_due(self.run):
            self._append([self._lease.taken()])
        match self._next():
            case Next.CATCH_UP if self._tool_project is not None:
                self._append(blocking.catch_up(self.run, self._tool_project))
                return machine.REPAIR_RECOVERED
            case Next.STUCK:
                return self._crashed("the run goes on, and no prompt waits for a reply")
            case Next.START_TURN if self._stop.is_set():
                return machine.WAITING
            case Next.START_TURN:
                self._turn(self._active())
            case Next.TURN_LOST:
                prompt = self._active()
                reply = self._workers.left_behind(self.run, prompt)
                lost = machine.lost(prompt) if reply is None else facts.turn_finished(prompt.queue_id, reply)
                self._append([lost])
        if self._next() is not Next.MOVE or self._stop.is_set():
            return machine.WAITING
        return self._move()

    def _move(self) -> str:
        result, decided = machine.move(self.run, self._tool_project, self._diff())
        self._append(decided)
        if self.run.status == words.COMPLETED:
            self._workers.ended(self.run)
        return result

    def _turn(self, prompt: Prompt) -> None:
        commit = self._repositories.head(self._workers.folder(prompt.project))
        self._append([facts.turn_started(prompt.queue_id, commit)])
        if self._keep is None:
            reply = self._workers.run(self.run, prompt, self._stop)
        else:
            with Keeping(self._lease, self._keep, self.run, prompt.queue_id) as keeping:
                reply = self._workers.run(self.run, prompt, _Either(self._stop, keeping.lost))
        self._record(prompt.queue_id, reply)

    def _record(self, queue_id: str, reply: Reply) -> None:
        """A reply is told whoever has the lease by now; where the turn was given up for lost, it comes too late."""

        def attempt() -> str:
            self._load()
            if self.run.prompts[queue_id].reply is None:
                self._append([facts.turn_finished(queue_id, reply)])
            return ""

        self._again(attempt)

    def _crashed(self, error: str) -> str:
        self._load()
        if not self.run.is_active or machine.held_by_another(self.run, self.name, self._lease.clock()):
            return machine.WAITING
        if decided := machine.crashed(self.run, self._tool_project, error):
            self._append(decided)
        return machine.BLOCKED

    def _diff(self) -> str:
        progress = self.run.step
        if progress is None:
            return ""
        if progress.commit is None:
            return NO_COMMIT
        return redact(self._repositories.diff(self._workers.folder(progress.project), progress.commit))

    def _next(self) -> Next:
        return machine.next_for(self.run, self.name, self._lease.clock(), self._tool_project)

    def _active(self) -> Prompt:
        prompt = self.run.active_prompt
        if prompt is None:
            raise ValueError("no prompt is active")
        return prompt

    def _load(self) -> None:
        if not self.run.is_active:
            run_id = self._journal.active_run()
            if run_id is None:
                return
            self.run = Run(id=run_id)
        self.run = fold(RUN, self.run, self._journal.read(self.run.id, self.run.last_seq))

    def _append(self, decided: list[Fact]) -> None:
        named = [Fact(one.kind, {**one.payload, "runner": self.name}) for one in decided]
        self._journal.append(self.run.id, named, self.run.last_seq)
        self._load()


class _Either(msgspec.Struct):
    one: Stopping
    other: Stopping

    def is_set(self) -> bool:
        return self.one.is_set() or self.other.is_set()

    @property
    def signal(self) -> object:
        """What the harness says stopped it."""
        return getattr(self.one, "signal", None)
