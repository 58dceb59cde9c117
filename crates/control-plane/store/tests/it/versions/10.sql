INSERT INTO passkeys (id, principal, label, document, enrolled_by, created_at, used_at)
    VALUES ('cred', 'prn_00000000000000aa', 'phone', '{}', 'link', 1790000000000, NULL);
INSERT INTO oidc_identities (issuer, subject, principal, created_at)
    VALUES ('https://id.example', 's1', 'prn_00000000000000aa', 1790000000000);
INSERT INTO login_sessions (hash, principal, method, created_at, seen_at, expires_at)
    VALUES ('h1', 'prn_00000000000000aa', 'passkey', 1790000000000, 1790000000000, 9990000000000);
INSERT INTO sign_in_links (hash, principal, created_at, created_by, expires_at)
    VALUES ('h2', 'prn_00000000000000aa', 1790000000000, 'admin', 9990000000000);
