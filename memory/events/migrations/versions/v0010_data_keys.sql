CREATE TABLE data_keys (
    number bigint PRIMARY KEY,
    user_id bigint NOT NULL,
    generation bigint NOT NULL,
    version bigint NOT NULL,
    master text COLLATE "C" NOT NULL,
    wrapped bytea NOT NULL
);
CREATE INDEX data_keys_by_user ON data_keys (user_id, version);
-- A program that knows no keys would take encrypted payloads for damaged, and write readable ones.
UPDATE usable SET since = '0010';
