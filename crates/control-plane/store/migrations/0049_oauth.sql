-- Sign-ins of narthex at the authorization servers of others. What is `sealed` is opened by the
-- vault, for its row alone. `expires_at`, `succeeded_at` and `failed_at` of a grant are seconds
-- since 1970, as authorization servers count; all other times are milliseconds. A time that never
-- comes is 0.

-- The tokens of one server, for one human; `subject` is empty for a grant that all share.
-- `generation` is the number of the last write of the tokens, `change` that of the last write of
-- the row. `lease_owner` is the process that renews the tokens up to `lease_until`, or empty.
CREATE TABLE oauth_grants (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    server TEXT NOT NULL,
    subject TEXT NOT NULL,
    generation BIGINT NOT NULL,
    sealed TEXT NOT NULL,
    issuer TEXT NOT NULL,
    scopes TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    can_renew BIGINT NOT NULL,
    succeeded_at BIGINT NOT NULL,
    failed_at BIGINT NOT NULL,
    failure TEXT NOT NULL,
    lease_owner TEXT NOT NULL,
    lease_until BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    change BIGINT NOT NULL,
    PRIMARY KEY (workspace, server, subject)
);

CREATE INDEX oauth_grants_by_subject ON oauth_grants (subject);
CREATE INDEX oauth_grants_by_change ON oauth_grants (change);

-- Grows with every write and every removal of a grant. `dropped` is the number of the last removal.
CREATE TABLE oauth_changes (
    id BIGINT NOT NULL PRIMARY KEY,
    n BIGINT NOT NULL,
    dropped BIGINT NOT NULL
);

INSERT INTO oauth_changes (id, n, dropped) VALUES (1, 0, 0);

-- The clients as which narthex is registered at authorization servers.
CREATE TABLE oauth_clients (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    issuer TEXT NOT NULL,
    redirect_base TEXT NOT NULL,
    sealed TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (workspace, issuer, redirect_base)
);

-- Open sign-ins, each under the hash of its `state`, for the grant of this server and subject.
CREATE TABLE oauth_attempts (
    state_hash TEXT NOT NULL PRIMARY KEY,
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    server TEXT NOT NULL,
    subject TEXT NOT NULL,
    sealed TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);

CREATE INDEX oauth_attempts_by_workspace ON oauth_attempts (workspace, expires_at);
