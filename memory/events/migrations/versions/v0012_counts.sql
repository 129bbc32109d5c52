-- How many events a user has, so that one that is gone whole is missed.
ALTER TABLE users ADD COLUMN events bigint NOT NULL DEFAULT 0;
UPDATE users u SET events = (SELECT count(*) FROM events e WHERE e.user_id = u.id);
-- A program that knows no counts would leave its events out of them.
UPDATE usable SET since = '0012';
