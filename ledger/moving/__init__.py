"""A whole ledger as lines of JSON, and back: for moving between stores, for keeping, for looking into with jq.

One object a line, UTF-8, each line ended by a line feed:

    {"ledgerd":1,"ledger_id":"9f…","buckets":1}
        the first line; 1 is the format's version
    {"stream":{"name":…,"root":…,"task_id":…,"saddle":…,"contiguous":…}}
        before the first event of a stream
    {"position":1,"session_id":…,"seq":…,"kind":…,"actor":…,"at":…,"recorded_at":…,"task_id":…,"payload":…}
        an event, in the order of the feed; `extra` with its unknown fields where it has any
    {"conflict":{"session_id":…,"seq":…,"kind":…,"actor":…,"at":…,"received_at":…,"payload":…}}
        the loser of a conflict, after all events
    {"end":{"streams":…,"events":…,"conflicts":…}}
        the last line; without it the file is cut short

Payloads are spliced in byte for byte. One that would break the line, or lose white space at its ends, stands as a
JSON string under `payload_text` instead; `extra` likewise. Access tokens, seals and delivery counts are not moved.
"""

from ledger.moving.copying import Copied, copy_ledger
from ledger.moving.exporting import export_ledger
from ledger.moving.importing import BadLine, import_ledger
from ledger.moving.lines import Counts
from ledger.moving.placing import Imported

__all__ = ["BadLine", "Copied", "Counts", "Imported", "copy_ledger", "export_ledger", "import_ledger"]
