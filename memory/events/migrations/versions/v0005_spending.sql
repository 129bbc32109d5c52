CREATE TABLE spending (
    tenant text COLLATE "C" NOT NULL,
    day text COLLATE "C" NOT NULL,
    model text COLLATE "C" NOT NULL,
    calls bigint NOT NULL,
    input bigint NOT NULL,
    output bigint NOT NULL,
    cost double precision NOT NULL,
    PRIMARY KEY (tenant, day, model)
);
