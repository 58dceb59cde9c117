INSERT INTO door_clients (id, kind, document, created_at, used_at)
    VALUES ('dcr-app', 'registration', '{}', 1790000000000, 1790000001000);
INSERT INTO door_requests (hash, browser, document, expires_at) VALUES ('h6', 'b1', '{}', 1890000000000);
INSERT INTO door_connections (id, acts_for, client, consent)
    VALUES ('cli_00000000000000ee', 'prn_00000000000000aa', 'dcr-app', '{}');
INSERT INTO door_codes (hash, connection, state, document, expires_at)
    VALUES ('h7', 'cli_00000000000000ee', 'used', '{}', 1890000000000);
INSERT INTO door_families (id, connection, generation, document, expires_at, revoked_at)
    VALUES ('f1', 'cli_00000000000000ee', 2, '{}', 1890000000000, 0);
INSERT INTO door_tokens (hash, connection, family, document, expires_at, revoked_at)
    VALUES ('h8', 'cli_00000000000000ee', 'f1', '{}', 1890000000000, 0);
INSERT INTO door_proofs (hash, expires_at) VALUES ('h9', 1890000000000);
