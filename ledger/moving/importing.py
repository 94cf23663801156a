"""Reads an exported ledger into a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
from msgspec.structs import replace

from ledger.errors import InvalidRequest
from ledger.events.model import OPENING_SEQ, NewEvent
from ledger.moving.lines import Counts, EventLine, LoserLine, StreamLine, read_header, read_line
from ledger.store.base import Opening, Store, Write, Written

BATCH_EVENTS = 500
BATCH_BYTES = 8 * 2**20


class BadLine(InvalidRequest):
    """A line of an exported ledger that cannot be taken. `line` counts from 1."""

    code = "bad_line"
    hint = "What stands before it was stored. Mend the file and import it again: nothing is stored twice."

    def __init__(self, line: int, detail: str) -> None:
        super().__init__(f"line {line}: {detail}")
        self.line = line


class Imported(msgspec.Struct):
    """What became of an import.

    `stored` events were new and `duplicates` were there already; `losers` of earlier conflicts were put back;
    `conflicts` are the `(session_id, seq)` that this ledger held with other content, which stays.
    """

    stored: int = 0
    duplicates: int = 0
    losers: int = 0
    conflicts: list[tuple[str, int]] = []


async def import_ledger(
    store: Store, lines: Iterable[bytes], *, progress: Callable[[int], object] | None = None
) -> Imported:
    """Appends what `export_ledger` wrote, with the times at which it was recorded. In an empty store with as many
    buckets every event comes to stand at its old position; a second import adds nothing. `progress` is called with
    the number of bytes read so far.

    Raises BadLine for a line that is not of the format and for a file that is cut short. What stands before it is
    stored by then, and the import can be repeated.
    """
    importer = _Importer(store)
    number = bytes_read = 0
    try:
        for number, line in enumerate(lines, start=1):
            _take(importer, number, line)
            bytes_read += len(line)
            if importer.is_full():
                await importer.flush()
                if progress is not None:
                    progress(bytes_read)
        if not importer.ended:
            raise BadLine(number + 1, "the file is cut short: the line `end` is missing")
    finally:
        await importer.flush()
    if progress is not None:
        progress(bytes_read)
    return importer.imported


def _take(importer: _Importer, number: int, line: bytes) -> None:
    try:
        if number == 1:
            read_header(line)
        else:
            importer.add(read_line(line), len(line))
    except (ValueError, RecursionError) as error:  # msgspec's errors and UnicodeDecodeError are ValueErrors
        raise BadLine(number, str(error)) from error


class _Importer:
    """Gathers lines into appends. The order of the lines is the order of the log."""

    def __init__(self, store: Store) -> None:
        self.imported = Imported()
        self.ended = False
        self._store = store
        self._openings: dict[str, Opening] = {}
        self._seen = Counts()
        self._runs: list[_Run] = []
        self._events = 0
        self._bytes = 0

    def is_full(self) -> bool:
        return self._events >= BATCH_EVENTS or self._bytes >= BATCH_BYTES

    def add(self, line: StreamLine | EventLine | LoserLine | Counts, size: int) -> None:
        if self.ended:
            raise ValueError("it stands behind the line `end`")
        match line:
            case StreamLine():
                self._openings[line.name] = line.opening()
                self._seen = replace(self._seen, streams=self._seen.streams + 1)
            case EventLine():
                self._add(line, line.event(), size, is_loser=False)
                self._seen = replace(self._seen, events=self._seen.events + 1)
            case LoserLine():
                self._add(line, line.event(), size, is_loser=True)
                self._seen = replace(self._seen, conflicts=self._seen.conflicts + 1)
            case Counts():
                if line != self._seen:
                    raise ValueError(f"it promises {_said(line)}, but the file holds {_said(self._seen)}")
                self.ended = True

    def _add(self, line: EventLine | LoserLine, event: NewEvent, size: int, *, is_loser: bool) -> None:
        opening = self._openings.get(line.session_id)
        if opening is None:
            raise ValueError(f"no line before it introduces the stream {line.session_id!r}")
        if event.seq == OPENING_SEQ:
            self._runs.append(_Run(line.session_id, replace(opening, event=event), is_loser))
        elif self._runs and (last := self._runs[-1]).stream == line.session_id and last.is_loser == is_loser:
            last.events.append(event)
        else:
            self._runs.append(_Run(line.session_id, opening, is_loser, [event]))
        self._events += 1
        self._bytes += size

    async def flush(self) -> None:
        runs, self._runs = self._runs, []
        self._events = self._bytes = 0
        by_bucket: dict[int, list[_Run]] = {}
        for run in runs:
            by_bucket.setdefault(self._store.bucket_of(run.opening.root), []).append(run)
        for batch in by_bucket.values():
            appended = await self._store.append([run.write() for run in batch])
            for run, written in zip(batch, appended.writes, strict=True):
                self._count(run, written)

    def _count(self, run: _Run, written: Written) -> None:
        if run.is_loser:
            self.imported.losers += len(written.conflicts)
            return
        if run.opening.event is not None and OPENING_SEQ not in written.conflicts:
            self.imported.stored += written.opened
            self.imported.duplicates += not written.opened
        self.imported.stored += written.stored
        self.imported.duplicates += written.duplicates
        self.imported.conflicts += [(run.stream, seq) for seq in written.conflicts]


class _Run(msgspec.Struct):
    """Events of one stream that stand together in the log."""

    stream: str
    opening: Opening
    is_loser: bool
    events: list[NewEvent] = []

    def write(self) -> Write:
        return Write(self.stream, self.events, self.opening)


def _said(counts: Counts) -> str:
    return f"{counts.streams} streams, {counts.events} events and {counts.conflicts} conflicts"
