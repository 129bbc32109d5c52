CREATE TABLE summaries (
    user_id bigint NOT NULL,
    owner text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    lines text NOT NULL,
    PRIMARY KEY (user_id, owner, session)
);
CREATE INDEX summaries_by_seq ON summaries (seq);
-- A program that knows no summary would leave a forgotten exchange's words in one.
UPDATE usable SET since = '0009';
