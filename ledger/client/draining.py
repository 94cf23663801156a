"""A thread that keeps an outbox empty. Of all that stand by an outbox, in whatever process, one sends at a time."""

from __future__ import annotations

import fcntl
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import TracebackType

from ledger.client.api import Api, ApiError
from ledger.client.outbox.backlog import Backlog
from ledger.client.retries import backoff_s
from ledger.client.sender import Sender
from ledger.errors import LedgerError, StorageError

IDLE_S = 0.25  # how soon what another process emitted is seen
STANDBY_S = 0.25  # how soon the place of a sender that ended is taken
HEARTBEAT_S = 60.0
DROP_OLD_S = 3600.0

_NO_ANSWER = (None, 502, 504)


class Drain:
    """Sends what waits in the outbox at `path` while entered. `make_api` makes an Api that does not try again.

    `trouble` is why nothing goes out at present; None where all is well, or another process does the sending.
    """

    def __init__(self, path: Path, bytes_max: int, make_api: Callable[[], Api]) -> None:
        self.trouble: LedgerError | None = None
        self._path = path
        self._bytes_max = bytes_max
        self._make_api = make_api
        self._failures = 0  # in a row
        self._heartbeat_at = self._drop_at = 0.0  # when they are due, by the monotonic clock
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ledgerd outbox", daemon=True)

    def __enter__(self) -> Drain:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def wake(self) -> None:
        """Something was emitted."""
        self._wake.set()

    def stop(self, timeout_s: float = 1.0) -> None:
        """Sends no more. A request that hangs is left to end by itself; nothing is lost by that."""
        self._stop.set()
        self._wake.set()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        random = Random()  # noqa: S311 — spreads retries
        while not self._stop.is_set():
            try:
                self._work()
            except LedgerError as error:
                self._failures += 1
                self.trouble = error
                after_s = error.retry_after_s if isinstance(error, ApiError) else None
                self._stop.wait(backoff_s(self._failures, random) if after_s is None else after_s)

    def _work(self) -> None:
        """Sends until told to stop. Raises LedgerError at the first trouble."""
        with _Place(self._path) as place:
            while not place.take():
                if self._stop.wait(STANDBY_S):
                    return
            backlog = Backlog(self._path, bytes_max=self._bytes_max)
            try:
                with self._make_api() as api:
                    self._send(Sender(backlog, api), backlog, api)
            except ApiError as error:
                if self._server_is_down(error):
                    backlog.doubt_all()  # it may come back as it was at its last backup
                raise
            finally:
                backlog.close()

    def _send(self, sender: Sender, backlog: Backlog, api: Api) -> None:
        while not self._stop.is_set():
            self._wake.clear()
            try:
                busy = sender.round()
            finally:
                if sender.answered:
                    self._failures, sender.answered = 0, 0
            self._look_after(backlog, api)
            self.trouble, self._failures = None, 0
            if not busy:
                self._wake.wait(IDLE_S)

    def _look_after(self, backlog: Backlog, api: Api) -> None:
        """What is due from time to time. A heartbeat also finds out that the server is away while nothing is sent."""
        now = time.monotonic()
        if now >= self._heartbeat_at:
            self._heartbeat_at = now + HEARTBEAT_S
            api.heartbeat(host=socket.gethostname())
        if now >= self._drop_at:
            self._drop_at = now + DROP_OLD_S
            backlog.drop_old()

    def _server_is_down(self, error: ApiError) -> bool:
        """True where nothing listens. Behind a proxy that looks like answers that do not come: one alone may have
        been cut off on its way."""
        return not error.connected or (error.status in _NO_ANSWER and self._failures > 0)


class _Place:
    """The one place of a sender beside an outbox; the kernel frees it when its holder ends."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(path.name + ".sender")
        self._fd = -1

    def __enter__(self) -> _Place:
        try:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StorageError(
                f"{self._path}: {error.strerror}", hint="Make the outbox's folder writable."
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def take(self) -> bool:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
