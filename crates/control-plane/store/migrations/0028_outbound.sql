-- Channels that agents post messages to, and webhooks that are told what humans decide. `url` and
-- `signing_key` are names of secrets, whose values lie elsewhere. A webhook has been told all that
-- happened in the workspace up to the event of the number `position`; it tries the next one at
-- `due_at`, which whoever begins to try puts off first, so that one daemon tries at a time. `kinds`
-- are words with spaces between them. Times are milliseconds since 1970, and one that never comes
-- is 0.
CREATE TABLE channels (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    provider TEXT NOT NULL,
    url TEXT NOT NULL,
    signing_key TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL,
    PRIMARY KEY (workspace, name)
);

CREATE TABLE webhooks (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    signing_key TEXT NOT NULL,
    kinds TEXT NOT NULL,
    position BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL,
    PRIMARY KEY (workspace, name)
);

CREATE TABLE webhook_deliveries (
    workspace TEXT NOT NULL,
    webhook TEXT NOT NULL,
    number BIGINT NOT NULL,
    kind TEXT NOT NULL,
    outcome TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    detail TEXT NOT NULL,
    happened_at BIGINT NOT NULL,
    PRIMARY KEY (workspace, webhook, number),
    FOREIGN KEY (workspace, webhook) REFERENCES webhooks (workspace, name) ON DELETE CASCADE
);
