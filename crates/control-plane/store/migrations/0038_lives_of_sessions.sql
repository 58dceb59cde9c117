-- What a session was begun as, by the document of its agent as the newest run of it was frozen with;
-- empty where none is known. How it ended; empty while it goes on. When a run of it was last seen to
-- do something, and until when it has said that it will be silent; 0 if it was and has not. Times are
-- milliseconds since 1970.
ALTER TABLE sessions ADD COLUMN agent_type TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN outcome TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN acted_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN quiet_until BIGINT NOT NULL DEFAULT 0;

UPDATE sessions SET outcome = COALESCE((SELECT MIN(runs.outcome) FROM runs
    WHERE runs.workspace = sessions.workspace AND runs.session = sessions.id
    AND runs.ended_at = sessions.ended_at), 'ended') WHERE ended_at <> 0;
