-- Secrets of workspaces, and their values. `last_version` only grows, so that no number is given
-- twice; a secret without values is not set. Times are milliseconds since 1970.
CREATE TABLE secrets (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    last_version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL,
    PRIMARY KEY (workspace, name)
);

-- `sealed` is nonce, ciphertext and tag in base64, under the master key `key_id`.
CREATE TABLE secret_versions (
    workspace TEXT NOT NULL,
    name TEXT NOT NULL,
    version BIGINT NOT NULL,
    key_id TEXT NOT NULL,
    sealed TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (workspace, name, version),
    FOREIGN KEY (workspace, name) REFERENCES secrets (workspace, name) ON DELETE CASCADE
);

CREATE INDEX secret_versions_by_key ON secret_versions (key_id);
