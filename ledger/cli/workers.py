"""Several processes that serve one ledger from one address: they share the listening socket, and the store."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable

import click

from ledger.errors import LedgerError, StorageError

READY = b"r"

# Run in each worker, with the function that it calls once it serves
Work = Callable[[Callable[[], None]], None]


def run_workers(count: int, work: Work, ready: Callable[[], None]) -> None:
    """Forks `count` processes that each run `work`, calls `ready` once all of them serve, and returns when all have
    ended: by SIGINT or SIGTERM, which is passed on. One that ends by itself ends the others.

    Must be called before there are threads or an event loop. Raises StorageError where a worker ended by itself."""
    read_end, write_end = os.pipe()
    alive, lifeline = os.pipe()  # held by this process alone: at its end, whatever ends it, the workers end too
    pids = {_fork(work, write_end, alive, (read_end, lifeline)) for _ in range(count)}
    os.close(write_end)
    os.close(alive)
    asked = _pass_on_signals(pids)
    with open(read_end, "rb", buffering=0) as served:
        started = 0
        while started < count and (said := served.read(count)):
            started += len(said)
    if started == count:
        ready()
    failed = _wait(pids)
    if failed and not asked:
        raise StorageError("a worker has ended by itself, and the others with it", hint="Its last words stand above.")


def _fork(work: Work, write_end: int, alive: int, of_parent: tuple[int, ...]) -> int:
    pid = os.fork()
    if pid:
        return pid
    for end in of_parent:
        os.close(end)
    threading.Thread(target=_end_with_parent, args=(alive,), daemon=True).start()
    code = 1
    try:
        work(lambda: _say_ready(write_end))
        code = 0
    except LedgerError as error:
        click.echo(f"error: {error.detail}", err=True)
        click.echo(f"hint: {error.hint}", err=True)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _end_with_parent(alive: int) -> None:
    os.read(alive, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def _say_ready(write_end: int) -> None:
    os.write(write_end, READY)
    os.close(write_end)


def _pass_on_signals(pids: set[int]) -> list[int]:
    """Gives the list of the signals that have come."""
    asked: list[int] = []

    def on(number: int, frame: object) -> None:
        asked.append(number)
        _end(pids)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on)
    return asked


def _end(pids: set[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


def _wait(pids: set[int]) -> bool:
    """Waits for all; True if one ended with another code than 0."""
    failed = False
    while pids:
        pid, status = os.wait()
        if pid in pids:
            pids.discard(pid)
            failed = failed or status != 0
            _end(pids)
    return failed
