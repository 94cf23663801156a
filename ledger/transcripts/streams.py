"""What agents print while they run: `claude --output-format stream-json`, `codex exec --json` and
`opencode run --format json`, one JSON object on a line.

Sessions. A stream's session is the vendor's id with `.stream` behind it: the same run may lie in the agent's own
transcript too, whose lines are others, so the two cannot share keys. Both belong to one task, and what is counted by
message is counted once. One file may hold several runs.

Unlike transcripts, streams say how a run ended: that is the `result`, done or failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from ledger.events import kinds
from ledger.transcripts.batches import Gathered
from ledger.transcripts.lines import HEAD_LINES, LineTranscript, RowReader
from ledger.transcripts.model import HARNESS, NoSession, Report, Row, Said, TranscriptSession, checked_id, title_of
from ledger.transcripts.reading import LineReader

SUFFIX = ".stream"


class StreamReader(RowReader, Protocol):
    """What a format makes of a stream's rows. It is shown the beginning first, to know titles and models by then."""

    def see(self, row: Row) -> None: ...


def open_stream(path: Path, rows: StreamReader, report: Report, *, growing: bool = False) -> LineTranscript:
    """The stream at `path`, read by `rows`. Raises NoSession where no row of its beginning names a session, and
    OSError where the file cannot be read."""
    head: list[Row] = []
    for line in LineReader(path, Report()):
        head += line.rows
        if line.number >= HEAD_LINES:
            break
    for row in head:
        rows.see(row)
    session = next(filter(None, map(rows.session_of, head)), None)
    if session is None:
        raise NoSession(f"{path}: no row names a session")
    return StreamTranscript(path, session, rows, report, growing=growing)


class StreamTranscript(LineTranscript):
    """Read as a whole each time: how a session ended is known from its last result alone, since the same stream may
    go on with another turn."""

    @property
    def mark(self) -> None:
        return None

    def _parts(self) -> Iterator[Gathered]:
        return last_endings(super()._parts())


def last_endings(parts: Iterable[Gathered]) -> Iterator[Gathered]:
    """The parts without the terminal results that another result of the same session follows."""
    held: dict[str, Gathered] = {}
    offset = 0
    for session, events, size, offset in parts:
        kept = []
        for event in events:
            if event["kind"] == kinds.RESULT:
                held.pop(session.session_id, None)
                if event["payload"]["state"] in kinds.TERMINAL_STATES:
                    held[session.session_id] = (session, [event], 0, offset)
                    continue
            kept.append(event)
        yield session, kept, size, offset
    for session, events, size, _ in held.values():
        yield session, events, size, offset


def session_of_run(
    path: Path, agent: str, vendor_id: str, *, prompt: str = "", model: str | None = None, cwd: str | None = None
) -> TranscriptSession:
    """The session of a run that the vendor calls `vendor_id`. Raises NoSession for an id that none can have."""
    own = checked_id(vendor_id, path)
    return TranscriptSession(
        session_id=own + SUFFIX,
        thread_id=own,
        title=title_of(prompt) or f"{agent} run {own[:12]}",
        agent=agent,
        cwd=cwd,
        model=model,
    )


def working() -> Said:
    """A turn has begun: what ended before has not ended the run."""
    return kinds.RESULT, HARNESS, {"state": kinds.WORKING}


def ended(state: str, summary: Any) -> Said:
    payload = {"state": state}
    if isinstance(summary, str) and summary.strip():
        payload["summary"] = summary
    return kinds.RESULT, HARNESS, payload
