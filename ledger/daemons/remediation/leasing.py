"""While an agent is at work: keeps the lease, and finds out when the turn is nobody's business any more."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from types import TracebackType

from ledger.client.api import ApiError
from ledger.daemons.remediation.journal import Journal
from ledger.daemons.remediation.machine import held_by_another
from ledger.errors import StreamMoved
from projections.fold import fold
from projections.remediation import facts
from projections.remediation.evolving import RUN
from projections.remediation.state import Run

Connect = Callable[[], AbstractContextManager[Journal]]


class Lease:
    """A runner's claim on runs. `clock` gives ns; a lease is renewed three times before it would expire."""

    def __init__(self, runner: str, clock: Callable[[], int], lease_s: float) -> None:
        self.runner = runner
        self.clock = clock
        self.lease_s = lease_s

    def taken(self) -> facts.Fact:
        return facts.lease_taken(self.runner, self.clock() + int(self.lease_s * 10**9))

    def is_due(self, run: Run) -> bool:
        """Whether it must be taken, or renewed, before anything is decided."""
        held = run.lease
        if held is None or held.runner != self.runner:
            return True
        return held.expires_at - self.clock() < int(self.lease_s * 10**9) * 2 // 3


class Keeping:
    """A thread that renews the lease while it lasts. `lost` is set when another runner has taken it, or the owner has
    decided something else: then the agent is to be ended. A server that is away is waited for: while it is, nobody
    else can take the lease either."""

    def __init__(self, lease: Lease, connect: Connect, run: Run, queue_id: str) -> None:
        self._lease = lease
        self._connect = connect
        self._run = run
        self._queue_id = queue_id
        self._done = threading.Event()
        self.lost = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True)

    def __enter__(self) -> Keeping:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def _keep(self) -> None:
        pause_s = self._lease.lease_s / 3
        if self._done.wait(pause_s):  # most turns need no connection
            return
        with self._connect() as journal:
            while not self.lost.is_set():
                with suppress(ApiError, StreamMoved):
                    self._look(journal)
                if self._done.wait(pause_s):
                    return

    def _look(self, journal: Journal) -> None:
        self._run = fold(RUN, self._run, journal.read(self._run.id, self._run.last_seq))
        taken = held_by_another(self._run, self._lease.runner, self._lease.clock())
        if taken or self._run.active != self._queue_id or journal.is_over(self._run.id):
            self.lost.set()
            return
        journal.append(self._run.id, [self._lease.taken()], self._run.last_seq)
