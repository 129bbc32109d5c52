-- How far a copy of another log is.
CREATE TABLE copies (source text NOT NULL, stage bigint NOT NULL, place text NOT NULL, moved bigint NOT NULL);
-- The oldest step whose program may use the tables as they are: what a step sets that does more than add.
CREATE TABLE usable (since text NOT NULL);
INSERT INTO usable VALUES ('0001');
-- What can't be folded from events.
CREATE TABLE probes (name text PRIMARY KEY, at bigint NOT NULL);
CREATE TABLE notes (name text COLLATE "C" PRIMARY KEY, body bytea NOT NULL);
CREATE TABLE secrets (tenant text COLLATE "C" PRIMARY KEY, secret bytea NOT NULL);
CREATE TABLE users (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    generation bigint NOT NULL DEFAULT 1,
    seen integer NOT NULL DEFAULT 0,
    UNIQUE (tenant, name)
);
-- An event's envelope stays for ever, and what finds it must not look into each month.
CREATE TABLE events (
    seq bigint PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    user_id bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    generation bigint NOT NULL,
    occurred bigint NOT NULL,
    recorded bigint NOT NULL,
    parent text COLLATE "C",
    subject text COLLATE "C" NOT NULL,
    partition smallint GENERATED ALWAYS AS ((seq & 15)::smallint) STORED
);
CREATE INDEX events_by_partition ON events (partition, seq);
CREATE INDEX events_by_user ON events (user_id, seq);
CREATE INDEX events_by_subject ON events (user_id, subject);
-- Compressed already, and nine tenths of the bytes; a table a month, and one for what has none.
CREATE TABLE payloads (seq bigint PRIMARY KEY, version integer NOT NULL, body bytea NOT NULL)
PARTITION BY RANGE (seq);
ALTER TABLE payloads ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE TABLE payloads_other PARTITION OF payloads DEFAULT;
CREATE TABLE consumers (
    name text COLLATE "C" NOT NULL,
    partition integer NOT NULL,
    seq bigint NOT NULL,
    owner text COLLATE "C" NOT NULL,
    lease_until bigint NOT NULL,
    epoch bigint NOT NULL,
    PRIMARY KEY (name, partition)
);
CREATE TABLE attempts (
    consumer text COLLATE "C" NOT NULL,
    event text COLLATE "C" NOT NULL,
    partition integer NOT NULL,
    seq bigint NOT NULL,
    count integer NOT NULL,
    PRIMARY KEY (consumer, event)
);
CREATE INDEX attempts_by_place ON attempts (consumer, partition, seq);
CREATE TABLE parked (
    consumer text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    error text NOT NULL,
    PRIMARY KEY (consumer, seq)
);
-- What is folded from events.
CREATE TABLE forgotten (
    user_id bigint NOT NULL, id text COLLATE "C" NOT NULL, at bigint NOT NULL, PRIMARY KEY (user_id, id)
);
CREATE TABLE step_keys (
    seq bigint PRIMARY KEY,
    user_id bigint NOT NULL,
    session text COLLATE "C" NOT NULL,
    exchange text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    isolated boolean NOT NULL,
    at bigint NOT NULL,
    outcome text COLLATE "C" NOT NULL,
    retry_key text COLLATE "C" NOT NULL,
    response_id text COLLATE "C" NOT NULL,
    last_pair text COLLATE "C" NOT NULL,
    last_two_pairs text COLLATE "C" NOT NULL,
    user_texts text COLLATE "C" NOT NULL,
    chain text COLLATE "C" NOT NULL
);
CREATE INDEX step_keys_by_retry_key ON step_keys (user_id, retry_key, at) WHERE retry_key <> '';
CREATE INDEX step_keys_by_response_id ON step_keys (user_id, response_id, at) WHERE response_id <> '';
CREATE INDEX step_keys_by_last_pair ON step_keys (user_id, last_pair, at) WHERE last_pair <> '';
CREATE INDEX step_keys_by_user_texts ON step_keys (user_id, user_texts, at) WHERE user_texts <> '';
CREATE TABLE exchanges (
    user_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    parent text COLLATE "C",
    state text COLLATE "C" NOT NULL,
    started bigint NOT NULL,
    finished bigint NOT NULL,
    last_step bigint NOT NULL,
    first bigint NOT NULL,
    PRIMARY KEY (user_id, id)
);
CREATE INDEX exchanges_by_time ON exchanges (user_id, started, first);
CREATE INDEX exchanges_by_parent ON exchanges (user_id, parent, session, started, first) WHERE parent IS NOT NULL;
CREATE INDEX exchanges_open ON exchanges (finished) WHERE state = 'open';
CREATE TABLE sessions (
    user_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    isolated boolean NOT NULL,
    exchanges bigint NOT NULL,
    started bigint NOT NULL,
    last bigint NOT NULL,
    first bigint NOT NULL,
    PRIMARY KEY (user_id, id)
);
CREATE TABLE pages (
    user_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    state text COLLATE "C" NOT NULL,
    occurred bigint NOT NULL,
    outdated bigint,
    owner text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    size bigint NOT NULL,
    segment text COLLATE "C",
    drawn bigint NOT NULL,
    seen bigint NOT NULL,
    visited bigint,
    PRIMARY KEY (user_id, id)
);
CREATE INDEX pages_waiting ON pages (user_id, owner, occurred) WHERE state = 'active' AND segment IS NULL;
CREATE INDEX pages_by_segment ON pages (user_id, segment) WHERE segment IS NOT NULL;
CREATE TABLE segments (
    user_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    owner text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    level double precision NOT NULL,
    touched bigint,
    fade double precision NOT NULL,
    episode text COLLATE "C" NOT NULL,
    changed bigint NOT NULL,
    PRIMARY KEY (user_id, id)
);
CREATE INDEX segments_by_change ON segments (user_id, owner, changed);
CREATE INDEX pages_active ON pages (user_id, occurred, seq) WHERE state = 'active';
CREATE TABLE injections (seq bigint PRIMARY KEY, user_id bigint NOT NULL, records text NOT NULL);
CREATE INDEX injections_by_user ON injections (user_id);
CREATE TABLE memories (
    user_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    type text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    created bigint NOT NULL,
    occurred bigint NOT NULL,
    expires bigint,
    starts bigint NOT NULL,
    closed bigint,
    successor text COLLATE "C",
    subject text COLLATE "C" NOT NULL,
    attribute text COLLATE "C" NOT NULL,
    folded text NOT NULL,
    tags text NOT NULL,
    metadata text NOT NULL,
    first bigint NOT NULL,
    PRIMARY KEY (user_id, id)
);
CREATE INDEX memories_by_time ON memories (user_id, created, first);
CREATE INDEX memories_by_attribute ON memories (user_id, attribute, subject);
CREATE TABLE evidence (
    user_id bigint NOT NULL,
    page text COLLATE "C" NOT NULL,
    memory text COLLATE "C" NOT NULL,
    PRIMARY KEY (user_id, page, memory)
);
CREATE INDEX evidence_by_memory ON evidence (user_id, memory);
CREATE TABLE documents (
    user_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    last text COLLATE "C" NOT NULL,
    about text NOT NULL,
    PRIMARY KEY (user_id, id)
);
CREATE INDEX documents_by_name ON documents (user_id, name) WHERE about <> '';
CREATE INDEX documents_by_change ON documents (user_id, seq);
CREATE TABLE chunks (
    user_id bigint NOT NULL,
    document text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (user_id, document, position)
);
-- What lexical search weighs words by, of each owner alone.
CREATE TABLE term_records (
    owner text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    person text COLLATE "C" NOT NULL,
    terms bytea NOT NULL,
    PRIMARY KEY (owner, id)
);
CREATE INDEX term_records_by_person ON term_records (person);
CREATE TABLE term_frequencies (
    owner text COLLATE "C" NOT NULL, term bigint NOT NULL, records bigint NOT NULL, PRIMARY KEY (owner, term)
);
CREATE TABLE term_owners (owner text COLLATE "C" PRIMARY KEY, records bigint NOT NULL);
CREATE TABLE term_filled (collection text PRIMARY KEY);
CREATE FUNCTION instr(hay text, needle text) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN strpos(hay, needle);
