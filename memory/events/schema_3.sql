-- What a file of schema 2 lacks: how many events a user has, so that one that is gone whole is missed.
ALTER TABLE users ADD COLUMN events INTEGER NOT NULL DEFAULT 0;
UPDATE users SET events = (SELECT count(*) FROM events e WHERE e.user_id = users.id);
