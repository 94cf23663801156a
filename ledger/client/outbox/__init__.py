"""The durable queue on the daemon's side: itself a small ledger, in one SQLite file that several processes may share.

What is emitted is durable before the call returns, and gets its seq here, so both survive a crash of the daemon. A
sender (`ledger.client.sender`) pushes it in order per session. One outbox belongs to one server and one saddle.

What was acknowledged is kept for a while, so that it can be sent again to a server that was restored from a backup:
for KEPT_S, and as long as the file has room. When the file is full, what was acknowledged longest ago goes first.
What was not acknowledged is never dropped, and an emit that finds no room raises OutboxFull.
"""

from ledger.client.outbox.backlog import KEPT_S, Backlog
from ledger.client.outbox.emitting import BYTES_MAX, NEXT_SEQ, Added, Outbox, OutboxFull, default_path

__all__ = ["BYTES_MAX", "KEPT_S", "NEXT_SEQ", "Added", "Backlog", "Outbox", "OutboxFull", "default_path"]
