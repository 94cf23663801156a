"""Every error the ledger raises on purpose.

    LedgerError
    ├── InvalidRequest        the request itself is unusable; nothing was stored
    │   ├── MalformedBody     not JSON, cut short, not the encoding it claims
    │   ├── InvalidField      a field is missing, of the wrong type or out of bounds
    │   └── ForeignCursor     a cursor that this ledger did not give out
    ├── TooLarge              the body is over the limit after decompression
    ├── UnsupportedEncoding   a content encoding the ledger does not read
    ├── Unauthenticated       no token, or one that is unknown, expired or revoked
    ├── Forbidden             a known token whose role may not do this
    ├── NotFound              no such thing, or none that this saddle may see
    ├── Conflict              the request is well formed but contradicts what the log holds
    │   ├── StreamMoved       a conditional append lost its race: load again and decide again
    │   ├── SessionElsewhere  the session is open under another task
    │   ├── IdTaken           the id exists with other content
    │   └── NotOffered        the decision is not open in this status
    ├── Overloaded            too much in flight; send again later
    └── StorageError          the store could not keep it; nothing was acknowledged
        ├── StorageFull       the disk is full
        ├── StoreLocked       another server holds this store
        ├── StoreMismatch     a foreign file, an older or a newer schema
        └── LedgerDamaged     what is stored does not match its seals

Each carries `code` (stable, for programs), `detail` (what happened, where) and `hint` (what to do next).
HTTP statuses are known in one place only: `ledger/http/problems.py`.
"""

from __future__ import annotations


class LedgerError(Exception):
    """Base of all errors of the ledger. `code` is stable; `detail` and `hint` are for people."""

    code = "ledger_error"
    hint = ""

    def __init__(self, detail: str, *, code: str | None = None, hint: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        if code is not None:
            self.code = code
        if hint is not None:
            self.hint = hint


class InvalidRequest(LedgerError):
    code = "invalid_request"


class MalformedBody(InvalidRequest):
    code = "malformed_body"
    hint = "Send one complete JSON document in UTF-8."


class InvalidField(InvalidRequest):
    """A field is missing, of the wrong type or out of bounds. `field` is its path, such as `events[3].seq`."""

    code = "invalid_field"

    def __init__(self, field: str, detail: str, *, code: str | None = None, hint: str | None = None) -> None:
        super().__init__(f"{field}: {detail}", code=code, hint=hint)
        self.field = field


class ForeignCursor(InvalidRequest):
    code = "foreign_cursor"
    hint = "Use a cursor as this ledger gave it out, or leave it away to read from the start."


class TooLarge(LedgerError):
    code = "body_too_large"
    hint = "Split the chunk into smaller ones and send each."


class UnsupportedEncoding(LedgerError):
    code = "unsupported_encoding"
    hint = "Send the body plain, or with Content-Encoding gzip or zstd."


class Unauthenticated(LedgerError):
    code = "unauthenticated"
    hint = "Send `Authorization: Bearer TOKEN` with a token of `ledgerd token create`."


class Forbidden(LedgerError):
    code = "forbidden"
    hint = "Use a token whose role may do this; `ledgerd token create --role …` makes one."


class NotFound(LedgerError):
    code = "not_found"


class Conflict(LedgerError):
    code = "conflict"


class StreamMoved(Conflict):
    """A conditional append lost its race. `last_seq` is where the stream stands now."""

    code = "stream_moved"
    hint = "Read it again and decide again."

    def __init__(self, stream: str, expected_seq: int, last_seq: int) -> None:
        super().__init__(f"stream {stream!r} stands at seq {last_seq}, not at {expected_seq}")
        self.stream = stream
        self.last_seq = last_seq


class SessionElsewhere(Conflict):
    code = "session_elsewhere"
    hint = "A session works on one task for ever: open a new session for the other task."


class IdTaken(Conflict):
    code = "id_taken"
    hint = "Leave `id` away to be given a new one, or repeat the first request exactly."


class NotOffered(Conflict):
    code = "not_offered"
    hint = "The JSON of a goal or task lists the decisions that are open to it under `actions`."


class Overloaded(LedgerError):
    """Too much in flight. `retry_after_s` says when to send again, in seconds."""

    code = "overloaded"
    hint = "Send the same request again after Retry-After; it is stored once."

    def __init__(self, detail: str, *, retry_after_s: int = 1) -> None:
        super().__init__(detail)
        self.retry_after_s = retry_after_s


class StorageError(LedgerError):
    code = "storage_unavailable"
    hint = "Nothing was acknowledged. Send the same request again; it is stored once."


class StorageFull(StorageError):
    code = "storage_full"
    hint = "Make room on the ledger's disk, then send the same request again; it is stored once."


class StoreLocked(StorageError):
    code = "store_locked"
    hint = "Stop the other server, or give this one a store of its own with --store."


class StoreMismatch(StorageError):
    code = "store_mismatch"
    hint = "Use the ledgerd version that wrote this store, or another store."


class LedgerDamaged(StorageError):
    code = "ledger_damaged"
    hint = "Restore from a backup and let the daemons send again; nothing is stored twice."
