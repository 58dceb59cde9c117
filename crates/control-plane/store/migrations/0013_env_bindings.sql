-- Secrets that go into the environment of agents themselves, each under a name and for one scope.
-- `scope_id` is empty for the workspace itself; `agent` is that of the scope, if it is one, so that
-- a binding goes with it. Times are milliseconds since 1970.
CREATE TABLE env_bindings (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    scope TEXT NOT NULL,
    scope_id TEXT NOT NULL,
    name TEXT NOT NULL,
    secret TEXT NOT NULL,
    agent TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL,
    PRIMARY KEY (workspace, scope, scope_id, name),
    FOREIGN KEY (workspace, secret) REFERENCES secrets (workspace, name) ON DELETE CASCADE,
    FOREIGN KEY (workspace, agent) REFERENCES agents (workspace, id) ON DELETE CASCADE
);

-- Which variables whoever created the run was told, with spaces between them.
ALTER TABLE runs ADD COLUMN agent_env TEXT NOT NULL DEFAULT '';
