-- The ledger on SQLite. One bucket, so `position` alone names an event's place in the log.
-- Texts are UTF-8, times are nanoseconds since the Unix epoch (UTC).

CREATE TABLE ledger (
    ledger_id  TEXT    NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

-- What an append takes its positions from, and where the chain of seals ends.
CREATE TABLE counters (
    bucket   INTEGER PRIMARY KEY,
    position INTEGER NOT NULL,
    seal     INTEGER NOT NULL,
    link     BLOB    NOT NULL
) STRICT;

CREATE TABLE roots (
    root_n INTEGER PRIMARY KEY,
    root   TEXT    NOT NULL UNIQUE
) STRICT;

-- Sessions and the ledger's own streams; each lies under one task and one root for ever.
CREATE TABLE streams (
    stream_n         INTEGER PRIMARY KEY,
    stream           TEXT    NOT NULL UNIQUE,
    root_n           INTEGER NOT NULL REFERENCES roots,
    task_id          TEXT,
    saddle           TEXT    NOT NULL,
    contiguous       INTEGER NOT NULL,
    high_seq         INTEGER NOT NULL,
    events           INTEGER NOT NULL,
    last_recorded_at INTEGER NOT NULL
) STRICT;
CREATE INDEX streams_by_root ON streams (root_n, stream);

-- The log. The unique constraint is what makes every delivery count once, across restarts.
CREATE TABLE events (
    position    INTEGER PRIMARY KEY,
    stream_n    INTEGER NOT NULL REFERENCES streams,
    seq         INTEGER NOT NULL,
    root_n      INTEGER NOT NULL,
    decisive    INTEGER NOT NULL,
    at          INTEGER,
    recorded_at INTEGER NOT NULL,
    digest      BLOB    NOT NULL,
    kind        TEXT    NOT NULL,
    actor       TEXT    NOT NULL,
    extra       BLOB,
    payload     BLOB    NOT NULL,
    UNIQUE (stream_n, seq)
) STRICT;
CREATE INDEX events_by_root ON events (root_n, position);
CREATE INDEX events_decisive ON events (position) WHERE decisive = 1;

-- The other content of slots that were taken: never part of the log, never lost.
CREATE TABLE losers (
    stream_n    INTEGER NOT NULL REFERENCES streams,
    seq         INTEGER NOT NULL,
    digest      BLOB    NOT NULL,
    kind        TEXT    NOT NULL,
    actor       TEXT    NOT NULL,
    payload     BLOB    NOT NULL,
    at          INTEGER,
    received_at INTEGER NOT NULL,
    PRIMARY KEY (stream_n, seq, digest)
) STRICT, WITHOUT ROWID;

-- How often things came. Beside the log: losing a row changes no narrative.
CREATE TABLE deliveries (
    stream_n         INTEGER PRIMARY KEY REFERENCES streams,
    deliveries       INTEGER NOT NULL,
    duplicates       INTEGER NOT NULL,
    conflicts        INTEGER NOT NULL,
    late             INTEGER NOT NULL,
    results_repeated INTEGER NOT NULL
) STRICT;

-- One row for each transaction that stored events: a chain of digests over the rows it wrote.
CREATE TABLE seals (
    number INTEGER PRIMARY KEY,
    first  INTEGER NOT NULL,
    last   INTEGER NOT NULL,
    digest BLOB    NOT NULL
) STRICT;

-- Folded states, kept to shorten the next fold. A cache.
CREATE TABLE checkpoints (
    name     TEXT PRIMARY KEY,
    version  TEXT    NOT NULL,
    position INTEGER NOT NULL,
    state    BLOB    NOT NULL
) STRICT;

CREATE TABLE tokens (
    id         TEXT PRIMARY KEY,
    role       TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    hash       BLOB    NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT;
