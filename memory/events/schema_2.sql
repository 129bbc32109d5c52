-- What a file of schema 1 lacks: by what a tenant's events are found, checksums, and payloads that are in archives.
ALTER TABLE events ADD COLUMN tenant_key INTEGER NOT NULL DEFAULT 0;
ALTER TABLE events ADD COLUMN seal BLOB NOT NULL DEFAULT x'';
ALTER TABLE events ADD COLUMN redacted INTEGER NOT NULL DEFAULT 0;
CREATE INDEX events_by_tenant ON events (tenant_key);
ALTER TABLE payloads ADD COLUMN seal BLOB NOT NULL DEFAULT x'';
ALTER TABLE payloads ADD COLUMN archive INTEGER;
CREATE INDEX payloads_by_archive ON payloads (archive) WHERE archive IS NOT NULL;
CREATE TABLE archives (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL,
    events INTEGER NOT NULL,
    bytes INTEGER NOT NULL
);
UPDATE events SET redacted = 1 WHERE NOT EXISTS (SELECT 1 FROM payloads p WHERE p.seq = events.seq);
