-- The ledger on PostgreSQL, for any number of servers. Times are nanoseconds since the Unix epoch (UTC).
--
-- Every key begins with the bucket, and no statement of ledgerd reaches beyond the buckets that it names. There are no
-- sequences, triggers, foreign keys, advisory locks or notifications: a number is taken from the bucket's counter row,
-- which each transaction locks first. So the same tables also lie spread over machines.

CREATE TABLE ledger (
    bucket         integer NOT NULL,  -- 0: there is one row
    ledger_id      text    NOT NULL,
    schema_version integer NOT NULL,
    buckets        integer NOT NULL,
    created_at     bigint  NOT NULL,
    PRIMARY KEY (bucket)
);

-- What a transaction takes its positions and numbers from, and where the chain of seals ends. `moves` counts the
-- transactions, so that a server sees by one number whether what it remembers of a bucket still holds.
CREATE TABLE counters (
    bucket   integer NOT NULL,
    moves    bigint  NOT NULL,
    position bigint  NOT NULL,
    seal     bigint  NOT NULL,
    link     bytea   NOT NULL,
    streams  bigint  NOT NULL,
    roots    bigint  NOT NULL,
    PRIMARY KEY (bucket)
) WITH (fillfactor = 10);

-- Under which root a stream lies, for ever. Its bucket is that of the stream's name, so that a name is taken once in
-- the whole ledger; everything else about a stream lies in the bucket of its root.
CREATE TABLE places (
    bucket integer          NOT NULL,
    stream text COLLATE "C" NOT NULL,
    root   text COLLATE "C" NOT NULL,
    PRIMARY KEY (bucket, stream)
);

CREATE TABLE roots (
    bucket integer          NOT NULL,
    root_n bigint           NOT NULL,
    root   text COLLATE "C" NOT NULL,
    PRIMARY KEY (bucket, root_n),
    UNIQUE (bucket, root)
);

-- Sessions and the ledger's own streams; each lies under one task and one root for ever.
CREATE TABLE streams (
    bucket           integer          NOT NULL,
    stream_n         bigint           NOT NULL,
    stream           text COLLATE "C" NOT NULL,
    root_n           bigint           NOT NULL,
    task_id          text,
    saddle           text COLLATE "C" NOT NULL,
    contiguous       boolean          NOT NULL,
    high_seq         bigint           NOT NULL,
    events           bigint           NOT NULL,
    last_recorded_at bigint           NOT NULL,
    PRIMARY KEY (bucket, stream_n),
    UNIQUE (bucket, stream)
) WITH (fillfactor = 70);
CREATE INDEX streams_by_root ON streams (bucket, root_n, stream);

-- The log. The second unique constraint is what makes every delivery count once, across restarts and servers.
CREATE TABLE events (
    bucket      integer NOT NULL,
    position    bigint  NOT NULL,
    stream_n    bigint  NOT NULL,
    seq         bigint  NOT NULL,
    root_n      bigint  NOT NULL,
    decisive    boolean NOT NULL,
    at          bigint,
    recorded_at bigint  NOT NULL,
    digest      bytea   NOT NULL,
    kind        text    NOT NULL,
    actor       text    NOT NULL,
    extra       bytea,
    payload     bytea   NOT NULL,
    PRIMARY KEY (bucket, position),
    UNIQUE (bucket, stream_n, seq)
);
CREATE INDEX events_by_root ON events (bucket, root_n, position);
CREATE INDEX events_decisive ON events (bucket, position) WHERE decisive;

-- The other content of slots that were taken: never part of the log, never lost.
CREATE TABLE losers (
    bucket      integer NOT NULL,
    stream_n    bigint  NOT NULL,
    seq         bigint  NOT NULL,
    digest      bytea   NOT NULL,
    kind        text    NOT NULL,
    actor       text    NOT NULL,
    payload     bytea   NOT NULL,
    at          bigint,
    received_at bigint  NOT NULL,
    PRIMARY KEY (bucket, stream_n, seq, digest)
);

-- How often things came. Beside the log: losing a row changes no narrative.
CREATE TABLE deliveries (
    bucket           integer NOT NULL,
    stream_n         bigint  NOT NULL,
    deliveries       bigint  NOT NULL,
    duplicates       bigint  NOT NULL,
    conflicts        bigint  NOT NULL,
    late             bigint  NOT NULL,
    results_repeated bigint  NOT NULL,
    PRIMARY KEY (bucket, stream_n)
) WITH (fillfactor = 70);

-- One row for each transaction that stored events: a chain of digests over the rows it wrote.
CREATE TABLE seals (
    bucket integer NOT NULL,
    number bigint  NOT NULL,
    first  bigint  NOT NULL,
    last   bigint  NOT NULL,
    digest bytea   NOT NULL,
    PRIMARY KEY (bucket, number)
);

-- Folded states, kept to shorten the next fold. A cache. The bucket is that of the name.
CREATE TABLE checkpoints (
    bucket   integer          NOT NULL,
    name     text COLLATE "C" NOT NULL,
    version  text             NOT NULL,
    position bigint           NOT NULL,
    state    bytea            NOT NULL,
    PRIMARY KEY (bucket, name)
);

-- All in bucket 0: they are few, and every server keeps them in memory.
CREATE TABLE tokens (
    bucket     integer          NOT NULL,
    id         text COLLATE "C" NOT NULL,
    role       text             NOT NULL,
    name       text             NOT NULL,
    hash       bytea            NOT NULL,
    created_at bigint           NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    PRIMARY KEY (bucket, id),
    UNIQUE (bucket, hash)
);
