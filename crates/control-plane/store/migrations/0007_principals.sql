-- Who acts: humans of the installation, and services, each of one workspace. Times are milliseconds
-- since 1970.
CREATE TABLE principals (
    id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    name TEXT NOT NULL UNIQUE,
    workspace TEXT REFERENCES workspaces (id) ON DELETE CASCADE,
    operator_since BIGINT,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    disabled_at BIGINT
);

CREATE TABLE memberships (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    principal TEXT NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
    role TEXT NOT NULL,
    granted_at BIGINT NOT NULL,
    granted_by TEXT NOT NULL,
    PRIMARY KEY (workspace, principal, role)
);

-- `hash` is the SHA-256 of a token in hex.
CREATE TABLE service_tokens (
    id TEXT NOT NULL PRIMARY KEY,
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    principal TEXT NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
    hash TEXT NOT NULL,
    label TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    last_used_at BIGINT
);

-- Grows with every change of who may what, so that other daemons notice.
CREATE TABLE access_changes (
    id BIGINT NOT NULL PRIMARY KEY,
    n BIGINT NOT NULL
);

INSERT INTO access_changes (id, n) VALUES (1, 0);
