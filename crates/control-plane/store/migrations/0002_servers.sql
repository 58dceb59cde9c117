-- What is remembered of servers beside their definitions. Times are milliseconds since 1970.
CREATE TABLE server_flags (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    server TEXT NOT NULL,
    is_disabled BOOLEAN NOT NULL,
    changed_at BIGINT NOT NULL,
    PRIMARY KEY (workspace, server)
);

CREATE TABLE seeded_defaults (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    seeded_at BIGINT NOT NULL,
    PRIMARY KEY (workspace, name)
);
