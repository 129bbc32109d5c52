CREATE TABLE IF NOT EXISTS pages (
    subject TEXT NOT NULL,      -- whose: (tenant, user)
    id TEXT NOT NULL,
    owner TEXT NOT NULL,        -- who sees it: the subject, or one isolated agent of it
    generation INTEGER NOT NULL,
    occurred_us INTEGER NOT NULL,
    settled INTEGER NOT NULL,
    size INTEGER NOT NULL,
    vector BLOB,
    body BLOB NOT NULL,
    PRIMARY KEY (subject, id)
) STRICT;
CREATE INDEX IF NOT EXISTS pages_by_time ON pages (owner, occurred_us);

CREATE TABLE IF NOT EXISTS blocks (
    subject TEXT NOT NULL,
    owner TEXT NOT NULL,
    session TEXT NOT NULL,
    exchange TEXT NOT NULL,
    generation INTEGER NOT NULL,
    at_us INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (owner, session, exchange)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS blocks_by_subject ON blocks (subject, at_us);

-- Pages that left for the hard bound before they were settled: while there are any, the index lags.
CREATE TABLE IF NOT EXISTS dropped (
    subject TEXT NOT NULL,
    id TEXT NOT NULL,
    owner TEXT NOT NULL,
    PRIMARY KEY (subject, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS dropped_by_owner ON dropped (owner);

-- What was settled lately, by a digest of its texts: the worker may be quicker than the push.
CREATE TABLE IF NOT EXISTS lately (
    arrival INTEGER PRIMARY KEY AUTOINCREMENT,
    subject TEXT NOT NULL,
    id TEXT NOT NULL,
    digest BLOB NOT NULL,
    UNIQUE (subject, id)
) STRICT;

-- The user as far as this store knows: pages of an older generation are refused.
CREATE TABLE IF NOT EXISTS generations (
    subject TEXT PRIMARY KEY,
    generation INTEGER NOT NULL,
    filled INTEGER NOT NULL     -- whether what the log has of the latest pages is here too
) STRICT, WITHOUT ROWID;
