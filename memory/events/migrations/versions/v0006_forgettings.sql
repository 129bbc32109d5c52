CREATE TABLE forgettings (
    user_id bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    until bigint,
    state text COLLATE "C" NOT NULL,
    PRIMARY KEY (user_id, id)
);
CREATE INDEX forgettings_waiting ON forgettings (until) WHERE state = 'waiting';
-- A program that knows no such request would never carry one out.
UPDATE usable SET since = '0006';
