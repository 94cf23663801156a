"""opencode's sessions, in databases that are found by a pattern. A session's key is ID:TIME_UPDATED."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from pathlib import Path

from ledger.daemons.sweep.model import Found, Moment, SessionText, SourceFailed, Unreadable
from ledger.daemons.sweep.sources.files import one_line, unreadable
from ledger.daemons.sweep.sources.moments import moments_of
from ledger.transcripts import opencode_db
from ledger.transcripts.model import NoSession, Report
from ledger.transcripts.opencode import OpencodeTranscript, SessionRecord
from ledger.transcripts.opencode_parts import AGENT

NS_OF_MS = 10**6


class DatabaseSource:
    """`pattern` is a glob (`**`: any depth). Databases are opened to read only, and nothing appears beside them."""

    type = AGENT

    def __init__(self, name: str, pattern: str) -> None:
        self.name = name
        self._pattern = pattern
        self._records: dict[str, tuple[Path, SessionRecord]] = {}

    def sessions(self) -> Iterator[Found | Unreadable]:
        """The longest unchanged first; a session that stands in two databases, as where it was written last. Raises
        SourceFailed where nothing is found by the pattern."""
        paths = sorted({Path(path).resolve() for path in glob.iglob(self._pattern, recursive=True)})
        if not paths:
            hint = "Mend `path`: a glob of opencode's databases, such as ~/.local/share/opencode/*.db."
            raise SourceFailed(f"source {self.name!r}: no file is found by {self._pattern}", hint=hint)
        newest: dict[str, Found] = {}
        for path in paths:
            if not path.is_file():
                continue
            try:
                found = list(self._sessions_in(path))
            except OSError as error:
                yield Unreadable(self.name, one_line(str(path)), str(path), str(error))
                continue
            for one in found:
                before = newest.get(str(one.session_id))
                if before is None or (one.at_ns or 0) > (before.at_ns or 0):
                    newest[str(one.session_id)] = one
        yield from sorted(newest.values(), key=lambda one: (one.at_ns or 0, one.key))

    def read(self, found: Found) -> SessionText:
        """Raises SessionUnreadable."""
        path, record = self._records[found.where]
        transcript = opencode_db.open_transcript(path, record, Report())
        return SessionText(found, record.title, record.directory, self._moments(found, transcript))

    def _sessions_in(self, path: Path) -> Iterator[Found]:
        updated = opencode_db.updated_ms(path)
        for record, _ in opencode_db.sessions(path):
            ms = updated.get(record.id, record.created_ms)
            where = f"{path}#{record.id}"
            self._records[where] = path, record
            key = f"{one_line(record.id)}:{ms}"
            yield Found(self.name, key, where, self.type, record.id, ms * NS_OF_MS)

    def _moments(self, found: Found, transcript: OpencodeTranscript) -> Iterator[Moment]:
        try:
            yield from moments_of(transcript.batches())
        except (OSError, NoSession) as error:
            raise unreadable(found, error) from error
