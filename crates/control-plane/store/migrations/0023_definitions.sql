-- What servers of the catalog were seen to say of their tools, prompts and templates, each text
-- once: `digest` is of what it says, its kind and its name among it. `why` is JSON, for whoever
-- decides. `run` is the run in which it was seen first. A time that has not come is 0, and times
-- are milliseconds since 1970.
CREATE TABLE definitions (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    server TEXT NOT NULL,
    digest TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    text TEXT NOT NULL,
    why TEXT NOT NULL,
    run TEXT NOT NULL,
    first_seen BIGINT NOT NULL,
    last_seen BIGINT NOT NULL,
    decided_at BIGINT NOT NULL,
    decided_by TEXT NOT NULL,
    PRIMARY KEY (workspace, server, digest),
    FOREIGN KEY (workspace, server) REFERENCES mcp_servers (workspace, id) ON DELETE CASCADE
);

-- Of one name one text alone is taken without being asked about, whoever comes at the same time.
CREATE UNIQUE INDEX definitions_pinned ON definitions (workspace, server, kind, name)
    WHERE state = 'pinned';
