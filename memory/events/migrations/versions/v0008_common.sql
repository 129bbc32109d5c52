-- Facts by their values, over users; kinds of documents; what an operator refused.
ALTER TABLE memories ADD COLUMN value text COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX memories_by_value ON memories (attribute, value, user_id) WHERE value <> '';
ALTER TABLE documents ADD COLUMN kind text COLLATE "C" NOT NULL DEFAULT 'document';
DROP INDEX documents_by_name;
CREATE INDEX documents_by_name ON documents (user_id, kind, name) WHERE about <> '';
CREATE TABLE refusals (
    user_id bigint NOT NULL,
    topic text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    PRIMARY KEY (user_id, topic)
);
