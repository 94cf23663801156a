"""Reads an exported ledger into a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from ledger.errors import InvalidRequest
from ledger.moving.lines import Counts, EventLine, LoserLine, StreamLine, read_header, read_line
from ledger.moving.placing import Imported, Placer
from ledger.store.base import Opening, Store


class BadLine(InvalidRequest):
    """A line of an exported ledger that cannot be taken. `line` counts from 1."""

    code = "bad_line"
    hint = "What stands before it was stored. Mend the file and import it again: nothing is stored twice."

    def __init__(self, line: int, detail: str) -> None:
        super().__init__(f"line {line}: {detail}")
        self.line = line


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
            if importer.placer.is_full():
                await importer.placer.flush()
                if progress is not None:
                    progress(bytes_read)
        if not importer.ended:
            raise BadLine(number + 1, "the file is cut short: the line `end` is missing")
    finally:
        await importer.placer.flush()
    if progress is not None:
        progress(bytes_read)
    return importer.placer.imported


def _take(importer: _Importer, number: int, line: bytes) -> None:
    try:
        if number == 1:
            read_header(line)
        else:
            importer.add(read_line(line))
    except (ValueError, RecursionError) as error:  # msgspec's errors and UnicodeDecodeError are ValueErrors
        raise BadLine(number, str(error)) from error


class _Importer:
    """Takes lines. The order of the lines is the order of the log."""

    def __init__(self, store: Store) -> None:
        self.placer = Placer(store)
        self.ended = False
        self._openings: dict[str, Opening] = {}
        self._seen = Counts()

    def add(self, line: StreamLine | EventLine | LoserLine | Counts) -> None:
        if self.ended:
            raise ValueError("it stands behind the line `end`")
        match line:
            case StreamLine():
                self._openings[line.name] = line.opening()
                self._seen = replace(self._seen, streams=self._seen.streams + 1)
            case EventLine():
                self.placer.add(line.session_id, self._opening(line), line.event())
                self._seen = replace(self._seen, events=self._seen.events + 1)
            case LoserLine():
                self.placer.add(line.session_id, self._opening(line), line.event(), is_loser=True)
                self._seen = replace(self._seen, conflicts=self._seen.conflicts + 1)
            case Counts():
                if line != self._seen:
                    raise ValueError(f"it promises {_said(line)}, but the file holds {_said(self._seen)}")
                self.ended = True

    def _opening(self, line: EventLine | LoserLine) -> Opening:
        opening = self._openings.get(line.session_id)
        if opening is None:
            raise ValueError(f"no line before it introduces the stream {line.session_id!r}")
        return opening


def _said(counts: Counts) -> str:
    return f"{counts.streams} streams, {counts.events} events and {counts.conflicts} conflicts"
