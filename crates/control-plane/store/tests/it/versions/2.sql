INSERT INTO seeded_defaults (workspace, name, seeded_at)
    VALUES ('default', 'fetch', 1790000000000);
INSERT INTO server_flags (workspace, server, is_disabled, changed_at)
    VALUES ('team', 'git', 1, 1790000000000);
INSERT INTO server_flags (workspace, server, is_disabled, changed_at)
    VALUES ('team', 'memory', 0, 1790000000000);
