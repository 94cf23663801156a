"""Events, as importers yield them, as moments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ledger.daemons.sweep.model import Moment
from ledger.transcripts.model import Batch


def moments_of(batches: Iterable[Batch]) -> Iterator[Moment]:
    for batch in batches:
        session_id = batch.session.session_id
        for event in batch.events:
            yield Moment(session_id, event["seq"], event["kind"], event["actor"], event["payload"], event.get("at"))
