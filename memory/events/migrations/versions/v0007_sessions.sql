CREATE TABLE switched (
    user_id bigint NOT NULL,
    session text COLLATE "C" NOT NULL,
    mode text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    PRIMARY KEY (user_id, session)
);
-- A program that knows no private session would capture it.
UPDATE usable SET since = '0007';
