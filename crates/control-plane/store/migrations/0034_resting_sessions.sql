-- Sessions that are to go on by themselves: something has happened for them while no run of them went
-- on. `run` is the run that began the child that it comes from, which bounds their time; `sealed` is
-- what the next run is told and has as its scope. `tries` counts the beginnings, of which the next is
-- at `due_at`. Times are milliseconds since 1970.
CREATE TABLE resting_sessions (
    workspace TEXT NOT NULL,
    session TEXT NOT NULL,
    run TEXT NOT NULL,
    sealed TEXT NOT NULL,
    due_at BIGINT NOT NULL,
    tries BIGINT NOT NULL,
    PRIMARY KEY (workspace, session),
    FOREIGN KEY (workspace, session) REFERENCES sessions (workspace, id) ON DELETE CASCADE
);

CREATE INDEX resting_sessions_by_time ON resting_sessions (due_at);

-- For which workspaces which daemon has which executor, as it says itself from time to time.
CREATE TABLE executor_workspaces (
    holder TEXT NOT NULL,
    executor TEXT NOT NULL,
    workspace TEXT NOT NULL,
    served_until BIGINT NOT NULL,
    PRIMARY KEY (holder, executor, workspace)
);

-- When a session last said something itself; 0 if it has not yet.
ALTER TABLE event_streams ADD COLUMN own_at BIGINT NOT NULL DEFAULT 0;
UPDATE event_streams SET own_at = last_at;
