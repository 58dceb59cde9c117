INSERT INTO secret_versions (workspace, name, version, key_id, sealed, created_at)
    VALUES ('team', 'TOKEN', 2, '00000000000000aa', 'c2VhbGVk', 1790000000000);
INSERT INTO secrets (workspace, name, last_version, created_at, updated_at, updated_by)
    VALUES ('team', 'TOKEN', 2, 1790000000000, 1790000000000, 'admin');
