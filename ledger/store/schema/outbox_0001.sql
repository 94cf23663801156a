-- What an outbox keeps beside the log of its small ledger (sqlite_0001.sql): how far each session was sent, and what
-- the server would not take. Times are nanoseconds since the Unix epoch (UTC). An outbox keeps no seals: it drops what
-- was acknowledged long ago.

CREATE TABLE outbox (
    version INTEGER NOT NULL
) STRICT;

-- One row for each session. Everything up to `sent_seq` was acknowledged; `turn` rises when something was put below
-- what had been sent or read, so that an acknowledgement of an earlier batch does not skip it. `verified` is 0 where
-- the server may have lost what it acknowledged. A session with a `refused_code` is not sent until somebody says so.
CREATE TABLE sending (
    stream_n       INTEGER PRIMARY KEY REFERENCES streams,
    opening_sent   INTEGER NOT NULL,
    sent_seq       INTEGER NOT NULL,
    turn           INTEGER NOT NULL,
    has_end        INTEGER NOT NULL,
    end_sent       INTEGER NOT NULL,
    verified       INTEGER NOT NULL,
    refused_code   TEXT,
    refused_detail TEXT
) STRICT;

-- Events that the server rejected, or holds with other content: taken out of the queue, never lost.
CREATE TABLE dead_letters (
    letter_n INTEGER PRIMARY KEY,
    stream   TEXT    NOT NULL,
    seq      INTEGER NOT NULL,
    code     TEXT    NOT NULL,
    detail   TEXT    NOT NULL,
    buried_at INTEGER NOT NULL,
    at       INTEGER,
    digest   BLOB    NOT NULL,
    kind     TEXT    NOT NULL,
    actor    TEXT    NOT NULL,
    extra    BLOB,
    payload  BLOB    NOT NULL
) STRICT;

-- Asks for work whose answer is not known yet: one that was lost is asked again under the same session id.
CREATE TABLE asks (
    session_id TEXT PRIMARY KEY,
    held_until INTEGER NOT NULL
) STRICT;
