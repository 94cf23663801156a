-- The search index: a cache beside a ledger. It is deleted and made again whenever it does not fit.

CREATE TABLE index_of (
    version   INTEGER NOT NULL,
    ledger_id TEXT    NOT NULL,
    heads     TEXT    NOT NULL -- how far the log has been taken in: a JSON list of positions
) STRICT;

CREATE TABLE sessions (
    session_id TEXT PRIMARY KEY,
    agent      TEXT,
    host       TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE projects (
    root       TEXT PRIMARY KEY,
    project_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What can be found, in the order in which it was first said. Copies under other sessions are counted, not kept.
CREATE TABLE entries (
    entry_n    INTEGER PRIMARY KEY,
    root       TEXT    NOT NULL,
    task_id    TEXT    NOT NULL, -- empty for what was said of a goal
    seq        INTEGER NOT NULL,
    digest     BLOB    NOT NULL,
    session_id TEXT    NOT NULL,
    position   INTEGER NOT NULL,
    sort       TEXT    NOT NULL,
    actor      TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    project_id TEXT,
    agent      TEXT,
    host       TEXT,
    copies     INTEGER NOT NULL DEFAULT 1,
    text       TEXT    NOT NULL,
    UNIQUE (root, task_id, seq, digest)
) STRICT;

CREATE VIRTUAL TABLE words USING fts5 (
    text,
    content = 'entries',
    content_rowid = 'entry_n',
    tokenize = 'unicode61 remove_diacritics 2',
    prefix = '2 3'
);

CREATE TRIGGER entries_are_found AFTER INSERT ON entries BEGIN
    INSERT INTO words (rowid, text) VALUES (new.entry_n, new.text);
END;
