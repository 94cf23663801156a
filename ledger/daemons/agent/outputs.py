"""What a program writes: read as it comes, and kept as events by a thread of its own, so that the program never waits
for the disk. Where the outbox fails, or is slower than the program for long, the program goes on, and how much was
lost is told when the outbox works again.
"""

from __future__ import annotations

import fcntl
import os
import queue
import select
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO, NamedTuple, Protocol

from msgspec.structs import replace

from ledger.client.outbox import NEXT_SEQ
from ledger.client.redaction import Redactor
from ledger.client.saddle import Session
from ledger.errors import LedgerError
from ledger.events import kinds
from ledger.events.content import content_digest
from ledger.events.decode import new_event
from ledger.events.model import NewEvent

OUTPUT_LOST = "output.lost"  # {stream, lines}: what could not be kept before this
LINE_BYTES_MAX = 64 * 1024  # a longer line becomes several events

_READ_BYTES = 64 * 1024
_PIPE_BYTES = 2**20
_BATCHES_WAITING_MAX = 256  # of up to _READ_BYTES each, while the disk is slow
_EVENTS_WAITING_MAX = 100_000
_EVENTS_AT_ONCE_MAX = 5_000  # in one transaction


class Batch(NamedTuple):
    """Events to be made and kept: `size` of them, of which `make(start, stop)` makes some."""

    size: int
    make: Callable[[int, int], list[NewEvent]]


class Reading(Protocol):
    """What is made of one output. `last_words` is the last line with something on it."""

    last_words: str

    def take(self, data: bytes) -> Batch | None:
        """Some more of it, as it came; never raises."""
        ...

    def end(self) -> Batch | None: ...


class Keeper:
    """Keeps what is handed to it as events of a session, in order, without secrets where there is a `redactor`. Of
    more than `events_max` the rest is counted as lost."""

    def __init__(
        self,
        session: Session,
        actor: str,
        stream: str,
        events_max: int | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        self._session = session
        self._actor = actor
        self._stream = stream
        self._room = events_max
        self._redactor = redactor
        self._handed: queue.Queue[Batch | None] = queue.Queue(_BATCHES_WAITING_MAX)
        self._thread = threading.Thread(target=self._keep_what_is_handed, daemon=True)
        self._lost = self._waiting = 0
        self._counting = threading.Lock()

    def hand(self, batch: Batch) -> None:
        """Leaves a batch to the keeper's thread, or counts it as lost where too much waits already."""
        if self._thread.ident is None:
            self._thread.start()
        batch = self._within(batch)
        try:
            if batch.size:
                self._handed.put_nowait(batch)
        except queue.Full:
            self._wait_less(batch.size)
            self.lose(batch.size)

    def finish(self) -> None:
        """Waits until everything that was handed is kept, or counted as lost."""
        while self._thread.is_alive():
            with suppress(queue.Full):
                self._handed.put(None, timeout=1)
                self._thread.join()

    def keep(self, events: list[NewEvent]) -> None:
        """Keeps events, behind word of what was lost before them; or counts them as lost."""
        with self._counting:
            lines, self._lost = self._lost, 0
        payload = {"stream": self._stream, "lines": lines}
        lost = [event(OUTPUT_LOST, self._actor, payload)] if lines else []
        if not lost and not events:
            return
        try:
            self._session.add([*lost, *self._redacted(events)])
        except LedgerError:
            self.lose(lines + len(events))

    def _redacted(self, events: list[NewEvent]) -> list[NewEvent]:
        if self._redactor is None or not events:
            return events
        cleaned = self._redactor.redact_payloads([one.payload for one in events])
        return [
            one if payload is one.payload else with_payload(one, payload)
            for one, payload in zip(events, cleaned, strict=True)
        ]

    def lose(self, lines: int) -> None:
        with self._counting:
            self._lost += lines

    def _within(self, batch: Batch) -> Batch:
        """The beginning of a batch, as far as there is room; the rest is lost."""
        with self._counting:
            size = min(batch.size, _EVENTS_WAITING_MAX - self._waiting)
            if self._room is not None:
                size = min(size, self._room)
                self._room -= size
            self._waiting += size
            self._lost += batch.size - size
        return Batch(size, batch.make)

    def _wait_less(self, events: int) -> None:
        with self._counting:
            self._waiting -= events

    def _keep_what_is_handed(self) -> None:
        while (batch := self._handed.get()) is not None:
            for start in range(0, batch.size, _EVENTS_AT_ONCE_MAX):
                stop = min(start + _EVENTS_AT_ONCE_MAX, batch.size)
                self.keep(batch.make(start, stop))
                self._wait_less(stop - start)


class Lines:
    """Cuts what comes into lines. What is longer than `bytes_max` is parted, or left out where `parts` is False."""

    def __init__(self, bytes_max: int = LINE_BYTES_MAX, *, parts: bool = True) -> None:
        self.left_out = 0
        self._bytes_max = bytes_max
        self._parts = parts
        self._rest = bytearray()
        self._leaving_out = False

    def cut(self, data: bytes) -> list[bytes]:
        """The lines that have come to their end, without it."""
        piece, *others = data.split(b"\n")
        lines = self._grown(piece)
        if (
            len(others) > 1 and len(data) <= self._bytes_max
        ):  # then all but the first and the last are as they should be
            lines += self._ended()
            lines += others[:-1]
            return lines + self._grown(others[-1])
        for piece in others:
            lines += self._ended()
            lines += self._grown(piece)
        return lines

    def rest(self) -> list[bytes]:
        """The last line, if it has no end."""
        return [bytes(self._rest)] if self._rest else []

    def _ended(self) -> list[bytes]:
        line = [] if self._leaving_out else [bytes(self._rest)]
        self._rest.clear()
        self._leaving_out = False
        return line

    def _grown(self, piece: bytes) -> list[bytes]:
        """Lengthens the line that is under way; gives the parts of it that are full."""
        if self._leaving_out:
            return []
        self._rest += piece
        full = []
        while len(self._rest) > self._bytes_max:
            if not self._parts:
                self.left_out += 1
                self._leaving_out = True
                self._rest.clear()
                break
            full.append(bytes(self._rest[: self._bytes_max]))
            del self._rest[: self._bytes_max]
        return full


class PlainReading:
    """Output that is text: each line is an `output` event. With `bytes_max`, that much is kept as `text`, and of what
    comes after it nothing is kept: then it is `truncated`."""

    def __init__(self, actor: str, stream: str, bytes_max: int | None = None) -> None:
        self.last_words = ""
        self.truncated = False
        self.undecodable = False
        self._actor = actor
        self._stream = stream
        self._room = bytes_max
        self._kept = bytearray()
        self._lines = Lines()
        self._dropped = False

    def take(self, data: bytes) -> Batch | None:
        if self._room is not None:
            self.truncated = self.truncated or len(data) > self._room
            data = data[: self._room]
            self._room -= len(data)
            self._kept += data
        return self._batch(self._lines.cut(data)) if data else None

    def end(self) -> Batch | None:
        return self._batch(self._lines.rest())

    def text(self) -> str:
        """What was kept. What is no UTF-8 in it is U+FFFD, and said to be `undecodable`."""
        data = bytes(self._kept)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            if self.truncated and error.end == len(data) and error.reason == "unexpected end of data":
                return data[: error.start].decode(errors="replace")
            self.undecodable = True
            return data.decode(errors="replace")

    def _batch(self, lines: list[bytes]) -> Batch | None:
        if not lines:
            return None
        words = next((line for line in reversed(lines) if line.strip()), b"")
        self.last_words = _text(words) if words else self.last_words
        at, whole = time.time_ns(), b"\n".join(lines)  # what waits is kept small
        return Batch(
            len(lines), lambda start, stop: [self._event(line, at) for line in whole.split(b"\n")[start:stop]]
        )

    def _event(self, line: bytes, at: int) -> NewEvent:
        return event(kinds.OUTPUT, self._actor, {"stream": self._stream, "text": _text(line)}, at)


class Output:
    """One pipe of a program, read by a thread to its end. What is read is passed on to the file `passed_on_to`."""

    def __init__(self, keeper: Keeper, reading: Reading, *, passed_on_to: int | None = None) -> None:
        self._keeper = keeper
        self._reading = reading
        self._passed_on_to = passed_on_to
        self._given_up = self._give_up = -1
        self._thread: threading.Thread | None = None

    def read(self, pipe: IO[bytes]) -> None:
        """Starts to read."""
        self._given_up, self._give_up = os.pipe()
        self._thread = threading.Thread(target=self._read, args=(pipe,), daemon=True)
        self._thread.start()

    def finish(self, patience_s: float) -> None:
        """Reads to the end, but waits no longer than `patience_s` for an end that does not come, since somebody else
        holds the pipe; then waits until everything is kept."""
        if self._thread is not None:
            self._thread.join(patience_s)
            os.close(self._give_up)
            self._thread.join()
            os.close(self._given_up)
        self._keeper.finish()

    def _read(self, pipe: IO[bytes]) -> None:
        with suppress(OSError, AttributeError):  # not every system lets a pipe grow
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        with pipe:
            while self._has_more(pipe) and (data := os.read(pipe.fileno(), _READ_BYTES)):
                if self._passed_on_to is not None:
                    self._pass_on(data, self._passed_on_to)
                self._hand(self._reading.take(data))
        self._hand(self._reading.end())

    def _has_more(self, pipe: IO[bytes]) -> bool:
        ready, _, _ = select.select([pipe.fileno(), self._given_up], [], [])
        return pipe.fileno() in ready

    def _hand(self, batch: Batch | None) -> None:
        if batch is not None:
            self._keeper.hand(batch)

    @staticmethod
    def _pass_on(data: bytes, number: int) -> None:
        with suppress(OSError):  # nobody listens any more; the program goes on
            while data:
                data = data[os.write(number, data) :]


def event(kind: str, actor: str, payload: object, at: int | None = None) -> NewEvent:
    return new_event(NEXT_SEQ, kind, actor, payload, time.time_ns() if at is None else at)


def with_payload(one: NewEvent, payload: bytes) -> NewEvent:
    """The same event with another payload."""
    return replace(one, payload=payload, digest=content_digest(one.kind, one.actor, payload))


def _text(line: bytes) -> str:
    return line.removesuffix(b"\r").decode(errors="replace")
