"""The file beside an outbox in which hooks leave what they were told. Loads nothing but the interpreter's own.

A record is a line: AGENT, TICK, SESSION and the hook's input, with tabs between them. TICK is when the record was
made, in units of TICK_NS since the Unix epoch, and no two records have the same; SESSION is the one that the agent
was started in by `ledgerd run`, or empty. A line feed stands before each record, so that one cut short spoils no
other.
"""

from __future__ import annotations

import fcntl
import os
import time

BYTES_MAX = 64 * 2**20
RECORD_BYTES_MAX = 16 * 2**20
TICK_NS = 10_000

LOCK_S_MAX = 1.0  # how long a hook waits for the others
_LOCK_POLL_S = 0.002


class SpoolError(Exception):
    """A record could not be put down. The text says why."""


def default_outbox() -> str:
    """The path of `ledger.client.outbox.default_path`, absolute, without all that importing it would load."""
    if named := os.environ.get("LEDGERD_OUTBOX"):
        return os.path.abspath(os.path.expanduser(named))
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "ledgerd", "outbox.db")


def spool_path(outbox: str) -> str:
    return outbox + ".hooks"


def carrier_path(outbox: str) -> str:
    """The file that a carrier holds locked as long as it lives."""
    return outbox + ".hooks.carrier"


def put(outbox: str, agent: str, session: str, body: bytes) -> None:
    """Puts a record down, durably. Raises SpoolError, OSError; then nothing of it is left."""
    os.makedirs(os.path.dirname(outbox), mode=0o700, exist_ok=True)
    if len(body) > RECORD_BYTES_MAX:
        raise SpoolError(f"the input has more than {RECORD_BYTES_MAX} bytes")
    with Lock(outbox):
        file = os.open(spool_path(outbox), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(file).st_size
            if size + len(body) > BYTES_MAX:
                raise SpoolError(f"{spool_path(outbox)} is full")
            tick = time.time_ns() // TICK_NS
            try:
                _write(file, b"\n%s\t%d\t%s\t%s\n" % (agent.encode(), tick, _field(session), _one_line(body)))
                os.fsync(file)
            except OSError:
                os.ftruncate(file, size)
                raise
            while time.time_ns() // TICK_NS == tick:  # the next record has another
                pass
        finally:
            os.close(file)


class Lock:
    """Orders those who write to the spool or empty it. A context manager. Raises SpoolError where it is held for
    too long: somebody was stopped in the middle."""

    def __init__(self, outbox: str) -> None:
        self._path = outbox + ".hooks.lock"
        self._file = -1

    def __enter__(self) -> Lock:
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + LOCK_S_MAX
        while not try_lock(self._file):
            if time.monotonic() > deadline:
                os.close(self._file)
                raise SpoolError(f"{self._path} was held for more than {LOCK_S_MAX:g} s")
            time.sleep(_LOCK_POLL_S)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)


def try_lock(file: int) -> bool:
    """Takes the file's lock, which goes when the file is closed; False where another holds it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _field(text: str) -> bytes:
    return text.encode(errors="replace") if text.isprintable() else b""


def _one_line(body: bytes) -> bytes:
    """In JSON a line feed is white space: no string holds one as it is."""
    return body.replace(b"\n", b" ")


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]
