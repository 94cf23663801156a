"""The carrier: a process that makes events of what hooks leave in the spool, and sends them. One for each outbox.

    python -m ledger.hooks.carrying OUTBOX

It ends when nothing has come for LINGER_S and all is sent, or for PATIENCE_S and the server is away; the next hook
starts another. A hook that comes while it ends finds it gone, or is waited for: it leaves its place while it holds
the spool's lock and has seen that the spool is empty.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from ledger.client.outbox import BYTES_MAX, Backlog
from ledger.client.saddle import Saddle
from ledger.errors import StorageError
from ledger.hooks import spool, troubles
from ledger.hooks.telling import Record, Teller

LINGER_S = 30.0
PATIENCE_S = 900.0
POLL_S = 0.1
FAILED_POLL_S = 5.0


class Tray:
    """The reading side of the spool of `outbox`. What was read stays there until all of it was told."""

    def __init__(self, outbox: str) -> None:
        self._outbox = outbox
        self._offset = 0

    def records(self) -> Iterator[Record]:
        """What has come since. A record counts as read when the next one is asked for. A line that is none is noted
        and passed over."""
        if self._size() == self._offset:
            return
        with spool.Lock(self._outbox):
            size = self._size()  # nobody is in the middle of a record
        self._offset = self._offset if self._offset <= size else 0  # somebody has removed it
        with open(spool.spool_path(self._outbox), "rb") as file:
            file.seek(self._offset)
            while (offset := file.tell()) < size:
                line = file.readline()
                if record := self._record(line):
                    yield record
                self._offset = offset + len(line)

    def clear(self) -> None:
        """Empties the spool, unless there is more to read."""
        if not self._offset:
            return
        with spool.Lock(self._outbox):
            if self._size() == self._offset:
                os.truncate(spool.spool_path(self._outbox), 0)
                self._offset = 0

    def leave(self, place: int) -> bool:
        """Closes `place`, the file that keeps others from carrying, while nobody can put a record; False, and nothing
        is done, where there is more to read."""
        with spool.Lock(self._outbox):
            if self._size() != self._offset:
                return False
            os.close(place)
            return True

    def _size(self) -> int:
        try:
            return os.stat(spool.spool_path(self._outbox)).st_size
        except FileNotFoundError:
            return 0

    def _record(self, line: bytes) -> Record | None:
        if not line.strip():
            return None
        try:
            agent, tick, within, body = line.split(b"\t", 3)
            return Record(agent.decode(), int(tick), within.decode(), body)
        except ValueError:
            troubles.note(self._outbox, "a record of the spool was cut short")
            return None


class Carrier:
    """Carries until it is over. `place` is the file that the one carrier holds locked."""

    def __init__(self, saddle: Saddle, place: int) -> None:
        self._outbox = str(saddle.outbox.path)
        self._saddle = saddle
        self._place = place
        self._tray = Tray(self._outbox)
        self._teller = Teller(saddle.outbox, host=socket.gethostname())

    def run(self) -> None:
        backlog = Backlog(self._saddle.outbox.path, bytes_max=BYTES_MAX)
        news_at = time.monotonic()
        try:
            while True:
                pause_s = POLL_S
                try:
                    if self._carry():
                        news_at = time.monotonic()
                except (StorageError, OSError, spool.SpoolError) as error:  # the disk is full, for one
                    troubles.note(self._outbox, f"carrier: {error}")
                    pause_s = FAILED_POLL_S
                idle_s = time.monotonic() - news_at
                is_over = idle_s >= PATIENCE_S or (idle_s >= LINGER_S and backlog.is_drained())
                if is_over and self._tray.leave(self._place):
                    return
                time.sleep(pause_s)
        finally:
            backlog.close()

    def _carry(self) -> bool:
        """Tells what has come; False where nothing has."""
        carried = False
        for record in self._tray.records():
            carried = True
            try:
                self._teller.tell(record)
            except StorageError:
                raise
            except Exception as error:  # one bad record must not hold up the others, now or at the next start
                troubles.note(self._outbox, f"{record.agent}: {error}")
        self._teller.release()
        if carried:
            self._saddle.wake()
        if not self._teller.is_holding:
            self._tray.clear()
        return carried


def main(outbox: str) -> None:
    place = os.open(spool.carrier_path(outbox), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not spool.try_lock(place):
        return
    os.ftruncate(place, 0)
    os.write(place, b"%d\n" % os.getpid())  # for whoever wants to end it
    try:
        with Saddle(outbox=Path(outbox)) as saddle:
            Carrier(saddle, place).run()
    except Exception as error:  # nobody sees it end
        troubles.note(outbox, f"carrier: {type(error).__name__}: {error}")


if __name__ == "__main__":
    main(sys.argv[1])
