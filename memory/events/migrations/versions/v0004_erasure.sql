-- What erasures and legal holds add up to.
CREATE TABLE bases (tenant text COLLATE "C" PRIMARY KEY, generation bigint NOT NULL);
CREATE TABLE erasures (
    user_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    state text COLLATE "C" NOT NULL,
    PRIMARY KEY (user_id, id)
);
CREATE INDEX erasures_open ON erasures (seq) WHERE state <> 'purged';
CREATE TABLE holds (
    user_id bigint NOT NULL, name text COLLATE "C" NOT NULL, seq bigint NOT NULL, PRIMARY KEY (user_id, name)
);
-- A program that knows no bases would show what a tenant's erasure has yet to come to.
UPDATE usable SET since = '0004';
