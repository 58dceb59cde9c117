-- How humans prove who they are. `hash` is the SHA-256 of a token, `document` the public half of a
-- passkey as the library writes it. Times are milliseconds since 1970.
CREATE TABLE passkeys (
    id TEXT NOT NULL PRIMARY KEY,
    principal TEXT NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
    label TEXT NOT NULL,
    document TEXT NOT NULL,
    enrolled_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    used_at BIGINT
);

CREATE TABLE oidc_identities (
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    principal TEXT NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (issuer, subject)
);

CREATE TABLE login_sessions (
    hash TEXT NOT NULL PRIMARY KEY,
    principal TEXT NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
    method TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);

CREATE TABLE sign_in_links (
    hash TEXT NOT NULL PRIMARY KEY,
    principal TEXT NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
