INSERT INTO sign_in_links (hash, principal, created_at, created_by, expires_at, is_invitation)
    VALUES ('h3', 'prn_00000000000000aa', 1790000000000, 'ada', 9990000000000, 1);
