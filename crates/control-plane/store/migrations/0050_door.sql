-- The door as an authorization server. Codes and tokens are stored as hashes. Documents are JSON of
-- the crate `oauth`. Times are milliseconds since 1970, and one that never comes is 0.

-- Programs that may ask for tokens. `kind` is the way in which one became known.
CREATE TABLE door_clients (
    id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    document TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    used_at BIGINT NOT NULL
);

-- Requests that wait for a human. `browser` is the hash of the only browser that may answer, empty
-- before one has seen the page.
CREATE TABLE door_requests (
    hash TEXT NOT NULL PRIMARY KEY,
    browser TEXT NOT NULL,
    document TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);

-- The consent of a human to a program, which is a registered client from then on. `acts_for` is the
-- id of the human, who may be the holder of the admin token, which has no row.
CREATE TABLE door_connections (
    id TEXT NOT NULL PRIMARY KEY REFERENCES mcp_clients (id) ON DELETE CASCADE,
    acts_for TEXT NOT NULL,
    client TEXT NOT NULL,
    consent TEXT NOT NULL
);

-- Authorization codes. `state` is `unused`, `used` or `spent`; a used one stays for a day.
CREATE TABLE door_codes (
    hash TEXT NOT NULL PRIMARY KEY,
    connection TEXT NOT NULL REFERENCES door_connections (id) ON DELETE CASCADE,
    state TEXT NOT NULL,
    document TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);

-- Families of tokens, each with one refresh token that counts. `generation` grows with each use.
CREATE TABLE door_families (
    id TEXT NOT NULL PRIMARY KEY,
    connection TEXT NOT NULL REFERENCES door_connections (id) ON DELETE CASCADE,
    generation BIGINT NOT NULL,
    document TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    revoked_at BIGINT NOT NULL
);

-- Access tokens. `family` is empty for one without a family.
CREATE TABLE door_tokens (
    hash TEXT NOT NULL PRIMARY KEY,
    connection TEXT NOT NULL REFERENCES door_connections (id) ON DELETE CASCADE,
    family TEXT NOT NULL,
    document TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    revoked_at BIGINT NOT NULL
);

CREATE INDEX door_tokens_by_family ON door_tokens (family);

-- Proofs of programs with keys that were used, as hashes of the program's id with that of the proof.
CREATE TABLE door_proofs (
    hash TEXT NOT NULL PRIMARY KEY,
    expires_at BIGINT NOT NULL
);

CREATE INDEX door_proofs_by_expiry ON door_proofs (expires_at);
