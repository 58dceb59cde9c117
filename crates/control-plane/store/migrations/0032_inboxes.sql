-- How far whoever carries a session out has acknowledged its messages. A session has a row once
-- they have acknowledged any, or read them by themselves.
CREATE TABLE inboxes (
    workspace TEXT NOT NULL,
    session TEXT NOT NULL,
    acknowledged BIGINT NOT NULL,
    PRIMARY KEY (workspace, session),
    FOREIGN KEY (workspace, session) REFERENCES sessions (workspace, id) ON DELETE CASCADE
);

-- Messages that nobody has acknowledged. `sender` is the session that sent one, if one did.
-- `tellings` counts how often it was told again, and `due_at` is when something is to be done about
-- it next. Times are milliseconds since 1970, and one that does not come is 0.
CREATE TABLE unread_messages (
    workspace TEXT NOT NULL,
    session TEXT NOT NULL,
    seq BIGINT NOT NULL,
    sender TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    tellings BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    PRIMARY KEY (workspace, session, seq),
    FOREIGN KEY (workspace, session, seq)
        REFERENCES session_events (workspace, session, seq) ON DELETE CASCADE
);

CREATE INDEX unread_messages_by_due ON unread_messages (due_at) WHERE due_at > 0;

INSERT INTO unread_messages (workspace, session, seq, sender, expires_at, tellings, due_at)
    SELECT session_events.workspace, session_events.session, seq, '', 0, 0, 0 FROM session_events
    JOIN sessions ON sessions.workspace = session_events.workspace
    AND sessions.id = session_events.session
    WHERE kind = 'user.message' AND ended_at = 0;
