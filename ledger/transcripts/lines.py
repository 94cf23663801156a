"""Transcripts of one JSON object on a line, whatever agent wrote them.

Keys. seq = line × 1000 + n for the n-th event of a line (from 0), lines counted from 1. Where a row's events depend
on that row alone, a longer copy of a file has the same keys for the same lines, wherever it lies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from ledger.transcripts.batches import Gathered, gathered
from ledger.transcripts.bounding import PAYLOAD_BYTES_MAX, bounded
from ledger.transcripts.model import Batch, Event, Mark, Report, Row, Said, TranscriptSession
from ledger.transcripts.reading import LineReader

EVENTS_OF_LINE_MAX = 1000
HEAD_LINES = 1000  # how far a title, a folder and a model are looked for


class RowReader(Protocol):
    """What a format makes of its rows."""

    def session_of(self, row: Row) -> TranscriptSession | None:
        """The session that a row belongs to; None where none has been named yet."""
        ...

    def said_by(self, row: Row) -> Iterable[Said]: ...

    def at(self, row: Row) -> Any:
        """The row's instant as it is written, or None."""
        ...


class LineTranscript:
    """One file, read from `start` to its present end. `session` is what the file is mainly about."""

    def __init__(
        self,
        path: Path,
        session: TranscriptSession,
        rows: RowReader,
        report: Report,
        start: Mark | None = None,
        *,
        growing: bool = False,
        leaves_out: Callable[[bytes], bool] | None = None,
    ) -> None:
        self.session = session
        self._path = path
        self._rows = rows
        self._report = report
        self._lines = LineReader(path, report, start, growing=growing, leaves_out=leaves_out)

    @property
    def is_child(self) -> bool:
        return self.session.parent_session_id is not None

    @property
    def mark(self) -> Mark | None:
        return self._lines.mark

    def batches(self) -> Iterator[Batch]:
        return gathered(self._parts())

    def _parts(self) -> Iterator[Gathered]:
        for line in self._lines:
            first_seq = line.number * EVENTS_OF_LINE_MAX
            for row in line.rows:
                session = self._rows.session_of(row)
                if session is None:
                    self._report.bad_line(self._path, line.number, "no session has been named yet; left out")
                    continue
                events = self._events(row, first_seq, line.number)
                first_seq += len(events)
                if line.size < PAYLOAD_BYTES_MAX // 2:  # then no payload can come near the limit
                    yield session, events, line.size, line.end
                else:
                    for event in events:
                        event["payload"], size = bounded(event["payload"])
                        yield session, [event], size, line.end

    def _events(self, row: Row, first_seq: int, number: int) -> list[Event]:
        at = self._rows.at(row)
        events: list[Event] = []
        room = EVENTS_OF_LINE_MAX - first_seq % EVENTS_OF_LINE_MAX
        for kind, actor, payload in self._rows.said_by(row):
            event = {"seq": first_seq + len(events), "kind": kind, "actor": actor, "payload": payload}
            if at is not None:
                event["at"] = at
            events.append(event)
        if len(events) >= room:
            why = f"more than {EVENTS_OF_LINE_MAX - 1} events on one line; the rest left out"
            self._report.bad_line(self._path, number, why)
            del events[room - 1 :]
        return events
