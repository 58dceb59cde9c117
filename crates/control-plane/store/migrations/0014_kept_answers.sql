-- Answers to writes that came with an idempotency key, for those that ask again. `id` is the
-- SHA-256 of workspace, principal and key; `workspace` is null for what belongs to none. `claim`
-- names who is at it, and is empty once there is an answer. Times are milliseconds since 1970.
CREATE TABLE kept_answers (
    id TEXT NOT NULL PRIMARY KEY,
    workspace TEXT REFERENCES workspaces (id) ON DELETE CASCADE,
    claim TEXT NOT NULL,
    sealed TEXT NOT NULL,
    begun_at BIGINT NOT NULL
);

CREATE INDEX kept_answers_by_time ON kept_answers (begun_at);
