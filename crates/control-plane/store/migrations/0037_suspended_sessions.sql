-- Sessions that are set aside until somebody has them go on. `run` is the run of it that went on last
-- then, and `sealed` what that was made of: references alone, and no value of a secret. Both are empty
-- if none did. Times are milliseconds since 1970.
CREATE TABLE suspended_sessions (
    workspace TEXT NOT NULL,
    session TEXT NOT NULL,
    run TEXT NOT NULL,
    sealed TEXT NOT NULL,
    suspended_at BIGINT NOT NULL,
    suspended_by TEXT NOT NULL,
    PRIMARY KEY (workspace, session),
    FOREIGN KEY (workspace, session) REFERENCES sessions (workspace, id) ON DELETE CASCADE
);
