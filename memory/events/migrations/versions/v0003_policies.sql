CREATE TABLE policies (
    user_id bigint NOT NULL,
    level text COLLATE "C" NOT NULL,
    whose text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    value text NOT NULL,
    set_by text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (user_id, level, whose, name)
);
ALTER TABLE segments ADD COLUMN counted_by text COLLATE "C" NOT NULL DEFAULT '';
