-- What can't be folded from events: the log itself, identities, secrets and the consumers' places in it.
CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE secrets (tenant TEXT PRIMARY KEY, secret BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE users (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    generation INTEGER NOT NULL DEFAULT 1,
    seen INTEGER NOT NULL DEFAULT 0,
    UNIQUE (tenant, name)
);
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    user_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    generation INTEGER NOT NULL,
    occurred INTEGER NOT NULL,
    recorded INTEGER NOT NULL,
    parent TEXT,
    subject TEXT NOT NULL,
    partition INTEGER AS (0)
);
CREATE INDEX events_by_user ON events (user_id);
CREATE INDEX events_by_subject ON events (user_id, subject);
CREATE TABLE payloads (seq INTEGER PRIMARY KEY, version INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE consumers (
    name TEXT NOT NULL,
    partition INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    owner TEXT NOT NULL,
    lease_until INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    PRIMARY KEY (name, partition)
) WITHOUT ROWID;
CREATE TABLE attempts (
    consumer TEXT NOT NULL,
    event TEXT NOT NULL,
    partition INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (consumer, event)
) WITHOUT ROWID;
CREATE TABLE parked (
    consumer TEXT NOT NULL,
    seq INTEGER NOT NULL,
    error TEXT NOT NULL,
    PRIMARY KEY (consumer, seq)
) WITHOUT ROWID;
