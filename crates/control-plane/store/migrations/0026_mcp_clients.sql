-- MCP clients that are registered in a workspace, each for runs of one agent. `hash` is the SHA-256
-- of a client's token in hex. What is `sealed` holds the parameters and the scope of its runs; it is
-- empty once the client is revoked. `origins` has spaces between them. `session` and `run` are those
-- that the client acts for, empty before it has come. Times are milliseconds since 1970, and one
-- that never comes is 0.
CREATE TABLE mcp_clients (
    id TEXT NOT NULL PRIMARY KEY,
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    principal TEXT NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
    hash TEXT NOT NULL,
    agent TEXT NOT NULL,
    sealed TEXT NOT NULL,
    origins TEXT NOT NULL,
    session TEXT NOT NULL,
    run TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    revoked_at BIGINT NOT NULL
);
