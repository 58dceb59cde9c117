-- The rules of workspaces, as they were written. Rules that were cleared stay as an empty text, so
-- that `revision` only grows. Times are milliseconds since 1970.
CREATE TABLE workspace_rules (
    workspace TEXT NOT NULL PRIMARY KEY REFERENCES workspaces (id) ON DELETE CASCADE,
    document TEXT NOT NULL,
    revision BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL
);
