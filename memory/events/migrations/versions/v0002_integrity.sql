-- Whose an event is, to find it by; checksums; payloads that are in archives.
ALTER TABLE events ADD COLUMN tenant_key bigint NOT NULL DEFAULT 0;
ALTER TABLE events ADD COLUMN seal bytea NOT NULL DEFAULT '';
ALTER TABLE events ADD COLUMN redacted smallint NOT NULL DEFAULT 0;
CREATE INDEX events_by_tenant ON events (tenant_key, seq);
ALTER TABLE payloads ADD COLUMN seal bytea NOT NULL DEFAULT '';
ALTER TABLE payloads ADD COLUMN archive bigint;
CREATE INDEX payloads_by_archive ON payloads (archive) WHERE archive IS NOT NULL;
CREATE TABLE archives (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    state text COLLATE "C" NOT NULL,
    events bigint NOT NULL,
    bytes bigint NOT NULL
);
CREATE TABLE labels (
    seq bigint PRIMARY KEY,
    user_id bigint NOT NULL,
    trace text COLLATE "C" NOT NULL,
    tags text COLLATE "C" NOT NULL,
    metadata text COLLATE "C" NOT NULL
);
CREATE INDEX labels_by_trace ON labels (trace) WHERE trace <> '';
UPDATE events e SET redacted = 1 WHERE NOT EXISTS (SELECT 1 FROM payloads p WHERE p.seq = e.seq);
-- A program that knows no archives would take what is in them for damaged.
UPDATE usable SET since = '0002';
