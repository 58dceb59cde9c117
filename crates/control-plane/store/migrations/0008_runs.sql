-- Sessions and runs of workspaces. What is `sealed` holds what only a run itself may see: prompt,
-- parameters, scope and the frozen configuration; it is empty once it is not needed any more. A
-- text that does not apply is empty, and a time that has not come is 0. Times are milliseconds
-- since 1970.
CREATE TABLE sessions (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    agent TEXT NOT NULL,
    parent TEXT NOT NULL,
    depth BIGINT NOT NULL,
    sealed TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    ended_at BIGINT NOT NULL,
    PRIMARY KEY (workspace, id)
);

-- The last number that was given to a run.
CREATE TABLE run_counters (
    workspace TEXT NOT NULL PRIMARY KEY REFERENCES workspaces (id) ON DELETE CASCADE,
    last_pid BIGINT NOT NULL
);

-- `token` is the SHA-256 of what opens the run. The id tells it apart from all others, also from
-- those of other workspaces, as a token names nothing else.
CREATE TABLE runs (
    id TEXT NOT NULL PRIMARY KEY,
    workspace TEXT NOT NULL,
    session TEXT NOT NULL,
    pid BIGINT NOT NULL,
    agent TEXT NOT NULL,
    parent TEXT NOT NULL,
    token TEXT NOT NULL,
    sealed TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    ended_at BIGINT NOT NULL,
    outcome TEXT NOT NULL,
    FOREIGN KEY (workspace, session) REFERENCES sessions (workspace, id) ON DELETE CASCADE
);

CREATE UNIQUE INDEX runs_by_pid ON runs (workspace, pid);
CREATE INDEX runs_by_session ON runs (workspace, session);
CREATE INDEX runs_by_end ON runs (ended_at, id);
