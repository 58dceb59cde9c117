-- What runs share of their folders, and what is said of it. The copies lie outside: `hash` is the
-- SHA-256 of one in hex. `revision` counts how often the files were shared. Threads are about a
-- whole share or, with an anchor, a passage of it; `number` counts in the thread. A text that does
-- not apply is empty. Times are milliseconds since 1970, and one that never came is 0.
CREATE TABLE shares (
    workspace TEXT NOT NULL,
    id TEXT NOT NULL,
    session TEXT NOT NULL,
    run TEXT NOT NULL,
    title TEXT NOT NULL,
    kind TEXT NOT NULL,
    entry_point TEXT NOT NULL,
    total_size BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (workspace, id),
    FOREIGN KEY (workspace, session) REFERENCES sessions (workspace, id) ON DELETE CASCADE
);

CREATE TABLE shared_files (
    workspace TEXT NOT NULL,
    share TEXT NOT NULL,
    path TEXT NOT NULL,
    size BIGINT NOT NULL,
    content_type TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (workspace, share, path),
    FOREIGN KEY (workspace, share) REFERENCES shares (workspace, id) ON DELETE CASCADE
);

CREATE TABLE share_threads (
    workspace TEXT NOT NULL,
    id TEXT NOT NULL,
    share TEXT NOT NULL,
    anchor TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    resolved_at BIGINT NOT NULL,
    resolved_by TEXT NOT NULL,
    PRIMARY KEY (workspace, id),
    FOREIGN KEY (workspace, share) REFERENCES shares (workspace, id) ON DELETE CASCADE
);

CREATE INDEX share_threads_by_share ON share_threads (workspace, share);

CREATE TABLE share_comments (
    workspace TEXT NOT NULL,
    thread TEXT NOT NULL,
    number BIGINT NOT NULL,
    author TEXT NOT NULL,
    text TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (workspace, thread, number),
    FOREIGN KEY (workspace, thread) REFERENCES share_threads (workspace, id) ON DELETE CASCADE
);
