-- What happened in sessions, in order. `payload` is JSON. `seq` counts in the session, `number` in
-- the workspace; both grow by one with each event, and none is given twice. A text that does not
-- apply is empty. Times are milliseconds since 1970.
CREATE TABLE event_streams (
    workspace TEXT NOT NULL,
    session TEXT NOT NULL,
    oldest_seq BIGINT NOT NULL,
    last_seq BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (workspace, session),
    FOREIGN KEY (workspace, session) REFERENCES sessions (workspace, id) ON DELETE CASCADE
);

CREATE TABLE session_events (
    workspace TEXT NOT NULL,
    session TEXT NOT NULL,
    seq BIGINT NOT NULL,
    number BIGINT NOT NULL,
    happened_at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    run TEXT NOT NULL,
    message_id TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    payload TEXT NOT NULL,
    PRIMARY KEY (workspace, session, seq),
    FOREIGN KEY (workspace, session) REFERENCES event_streams (workspace, session) ON DELETE CASCADE
);

CREATE UNIQUE INDEX session_events_by_number ON session_events (workspace, number);
CREATE UNIQUE INDEX session_events_by_message
    ON session_events (workspace, session, kind, message_id) WHERE message_id <> '';

-- The last number that was given in a workspace, and the size of all that is kept there.
CREATE TABLE event_totals (
    workspace TEXT NOT NULL PRIMARY KEY REFERENCES workspaces (id) ON DELETE CASCADE,
    last_number BIGINT NOT NULL,
    bytes BIGINT NOT NULL
);

-- How long events are kept after the end of their session; 0 is for ever.
ALTER TABLE workspaces ADD COLUMN events_kept_days BIGINT NOT NULL DEFAULT 30;
