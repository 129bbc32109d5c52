-- Sessions of one name that several agents have are several from now on.
ALTER TABLE sessions ADD COLUMN own_agent text COLLATE "C" NOT NULL DEFAULT '';
UPDATE sessions SET own_agent = agent WHERE isolated;
ALTER TABLE sessions DROP CONSTRAINT sessions_pkey;
ALTER TABLE sessions ADD PRIMARY KEY (user_id, id, own_agent);
ALTER TABLE exchanges ADD COLUMN own_agent text COLLATE "C" NOT NULL DEFAULT '';
UPDATE exchanges x SET own_agent = s.own_agent FROM sessions s
    WHERE s.user_id = x.user_id AND s.id = x.session AND s.isolated AND x.state <> 'forgotten';
ALTER TABLE memories ADD COLUMN own_agent text COLLATE "C" NOT NULL DEFAULT '';
UPDATE memories m SET own_agent = m.agent WHERE EXISTS
    (SELECT 1 FROM sessions s WHERE s.user_id = m.user_id AND s.agent = m.agent AND s.isolated);
ALTER TABLE sessions DROP COLUMN isolated;
-- A program that knows no own sessions would mix them up.
UPDATE usable SET since = '0011';
