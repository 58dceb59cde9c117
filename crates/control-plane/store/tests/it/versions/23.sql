INSERT INTO definitions (workspace, server, digest, kind, name, state, text, why, run, first_seen, last_seen, decided_at, decided_by)
    VALUES ('team', 'docs', 'abababababababababababababababababababababababababababababababab', 'tool', 'read_file', 'pinned', '{"name":"read_file"}', '{}', 'run_0a1b2c3d4e5f', 1795312800000, 1795312800000, 0, '');
