"""Events as people and shells write them: one JSON object a line."""

from __future__ import annotations

import time

from msgspec.structs import replace

from ledger.client.outbox.emitting import NEXT_SEQ
from ledger.errors import LedgerError, MalformedBody
from ledger.events.decode import decode_chunk
from ledger.events.model import END_SEQ, Limits, NewEvent
from ledger.events.scan import members

_LIMITS = Limits()
_SEQ_IN_THE_MEANTIME = END_SEQ - 1


class BadLine(LedgerError):
    """A line that holds no event, and why."""

    code = "bad_line"


def read_line(line: bytes) -> NewEvent:
    """The event of a line: `{kind, payload?, actor?, at?, seq?}`, mended as the server would mend it.

    Without a seq it carries NEXT_SEQ, without a time it happens now. Raises BadLine."""
    line = line.strip()
    try:
        fields = members(line)
        numbered = "seq" in fields
        if not numbered:
            line = b'{"seq":%d%s%s' % (_SEQ_IN_THE_MEANTIME, b"," if fields else b"", line[1:])
        chunk = decode_chunk(b'{"session_id":"-","events":[%s]}' % line, _LIMITS)
    except MalformedBody as error:
        raise BadLine(error.detail) from error
    if chunk.rejected:
        raise BadLine(chunk.rejected[0].detail)
    [event] = chunk.events
    at = time.time_ns() if event.at is None else event.at
    return replace(event, at=at, seq=event.seq if numbered else NEXT_SEQ)
