-- Everything here is folded from events and can be dropped and folded again. `first` is where the log first
-- tells of a row: the order of what has the same moment.
CREATE TABLE bases (tenant TEXT PRIMARY KEY, generation INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE erasures (
    user_id INTEGER NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL, state TEXT NOT NULL, PRIMARY KEY (user_id, id)
) WITHOUT ROWID;
CREATE INDEX erasures_open ON erasures (seq) WHERE state <> 'purged';
CREATE TABLE holds (
    user_id INTEGER NOT NULL, name TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (user_id, name)
) WITHOUT ROWID;
CREATE TABLE forgotten (user_id INTEGER, id TEXT, at INTEGER NOT NULL, PRIMARY KEY (user_id, id)) WITHOUT ROWID;
CREATE TABLE step_keys (
    seq INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL,
    session TEXT NOT NULL,
    exchange TEXT NOT NULL,
    agent TEXT NOT NULL,
    isolated INTEGER NOT NULL,
    at INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    retry_key TEXT NOT NULL,
    response_id TEXT NOT NULL,
    last_pair TEXT NOT NULL,
    last_two_pairs TEXT NOT NULL,
    user_texts TEXT NOT NULL,
    chain TEXT NOT NULL
);
CREATE INDEX step_keys_by_retry_key ON step_keys (user_id, retry_key, at) WHERE retry_key <> '';
CREATE INDEX step_keys_by_response_id ON step_keys (user_id, response_id, at) WHERE response_id <> '';
CREATE INDEX step_keys_by_last_pair ON step_keys (user_id, last_pair, at) WHERE last_pair <> '';
CREATE INDEX step_keys_by_user_texts ON step_keys (user_id, user_texts, at) WHERE user_texts <> '';
CREATE TABLE exchanges (
    user_id INTEGER NOT NULL,
    id TEXT NOT NULL,
    session TEXT NOT NULL,
    parent TEXT,
    state TEXT NOT NULL,
    started INTEGER NOT NULL,
    finished INTEGER NOT NULL,
    last_step INTEGER NOT NULL,
    first INTEGER NOT NULL,
    own_agent TEXT NOT NULL,
    PRIMARY KEY (user_id, id)
) WITHOUT ROWID;
CREATE INDEX exchanges_by_time ON exchanges (user_id, started, first);
CREATE INDEX exchanges_by_parent ON exchanges (user_id, parent, session, started, first) WHERE parent IS NOT NULL;
CREATE INDEX exchanges_open ON exchanges (finished) WHERE state = 'open';
CREATE TABLE sessions (
    user_id INTEGER NOT NULL,
    id TEXT NOT NULL,
    own_agent TEXT NOT NULL,
    agent TEXT NOT NULL,
    exchanges INTEGER NOT NULL,
    started INTEGER NOT NULL,
    last INTEGER NOT NULL,
    first INTEGER NOT NULL,
    PRIMARY KEY (user_id, id, own_agent)
) WITHOUT ROWID;
CREATE TABLE pages (
    user_id INTEGER NOT NULL,
    id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    state TEXT NOT NULL,
    occurred INTEGER NOT NULL,
    outdated INTEGER,
    owner TEXT NOT NULL,
    session TEXT NOT NULL,
    size INTEGER NOT NULL,
    segment TEXT,
    drawn INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    visited INTEGER,
    PRIMARY KEY (user_id, id)
) WITHOUT ROWID;
CREATE INDEX pages_waiting ON pages (user_id, owner, occurred) WHERE state = 'active' AND segment IS NULL;
CREATE INDEX pages_by_segment ON pages (user_id, segment) WHERE segment IS NOT NULL;
CREATE TABLE segments (
    user_id INTEGER NOT NULL,
    id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    owner TEXT NOT NULL,
    state TEXT NOT NULL,
    level REAL NOT NULL,
    touched INTEGER,
    fade REAL NOT NULL,
    episode TEXT NOT NULL,
    changed INTEGER NOT NULL,
    counted_by TEXT NOT NULL,
    PRIMARY KEY (user_id, id)
) WITHOUT ROWID;
CREATE INDEX segments_by_change ON segments (user_id, owner, changed);
CREATE INDEX pages_active ON pages (user_id, occurred) WHERE state = 'active';
CREATE TABLE injections (seq INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, records TEXT NOT NULL);
CREATE INDEX injections_by_user ON injections (user_id);
CREATE TABLE memories (
    user_id INTEGER NOT NULL,
    id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    type TEXT NOT NULL,
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    created INTEGER NOT NULL,
    occurred INTEGER NOT NULL,
    expires INTEGER,
    starts INTEGER NOT NULL,
    closed INTEGER,
    successor TEXT,
    subject TEXT NOT NULL,
    attribute TEXT NOT NULL,
    folded TEXT NOT NULL,
    tags TEXT NOT NULL,
    metadata TEXT NOT NULL,
    first INTEGER NOT NULL,
    value TEXT NOT NULL,
    own_agent TEXT NOT NULL,
    PRIMARY KEY (user_id, id)
) WITHOUT ROWID;
CREATE INDEX memories_by_time ON memories (user_id, created, first);
CREATE INDEX memories_by_attribute ON memories (user_id, attribute, subject);
CREATE INDEX memories_by_value ON memories (attribute, value, user_id) WHERE value <> '';
CREATE TABLE evidence (
    user_id INTEGER NOT NULL,
    page TEXT NOT NULL,
    memory TEXT NOT NULL,
    PRIMARY KEY (user_id, page, memory)
) WITHOUT ROWID;
CREATE INDEX evidence_by_memory ON evidence (user_id, memory);
CREATE TABLE documents (
    user_id INTEGER NOT NULL,
    id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    last TEXT NOT NULL,
    about TEXT NOT NULL,
    kind TEXT NOT NULL,
    PRIMARY KEY (user_id, id)
) WITHOUT ROWID;
CREATE INDEX documents_by_name ON documents (user_id, kind, name) WHERE about <> '';
CREATE INDEX documents_by_change ON documents (user_id, seq);
CREATE TABLE chunks (
    user_id INTEGER NOT NULL,
    document TEXT NOT NULL,
    position INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (user_id, document, position)
) WITHOUT ROWID;
CREATE TABLE labels (
    seq INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL,
    trace TEXT NOT NULL,
    tags TEXT NOT NULL,
    metadata TEXT NOT NULL
);
CREATE INDEX labels_by_trace ON labels (trace) WHERE trace <> '';
CREATE TABLE policies (
    user_id INTEGER NOT NULL,
    level TEXT NOT NULL,
    whose TEXT NOT NULL,
    name TEXT NOT NULL,
    seq INTEGER NOT NULL,
    value TEXT NOT NULL,
    set_by TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (user_id, level, whose, name)
) WITHOUT ROWID;
CREATE TABLE spending (
    tenant TEXT NOT NULL,
    day TEXT NOT NULL,
    model TEXT NOT NULL,
    calls INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cost REAL NOT NULL,
    PRIMARY KEY (tenant, day, model)
) WITHOUT ROWID;
CREATE TABLE forgettings (
    user_id INTEGER NOT NULL,
    id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    until INTEGER,
    state TEXT NOT NULL,
    PRIMARY KEY (user_id, id)
) WITHOUT ROWID;
CREATE INDEX forgettings_waiting ON forgettings (until) WHERE state = 'waiting';
CREATE TABLE switched (
    user_id INTEGER NOT NULL,
    session TEXT NOT NULL,
    mode TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (user_id, session)
) WITHOUT ROWID;
CREATE TABLE summaries (
    user_id INTEGER NOT NULL,
    owner TEXT NOT NULL,
    session TEXT NOT NULL,
    seq INTEGER NOT NULL,
    lines TEXT NOT NULL,
    PRIMARY KEY (user_id, owner, session)
) WITHOUT ROWID;
CREATE INDEX summaries_by_seq ON summaries (seq);
CREATE TABLE refusals (user_id INTEGER, topic TEXT, seq INTEGER NOT NULL, PRIMARY KEY (user_id, topic)) WITHOUT ROWID;
