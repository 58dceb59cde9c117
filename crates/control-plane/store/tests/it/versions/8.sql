INSERT INTO run_counters (workspace, last_pid)
    VALUES ('team', 1);
INSERT INTO runs (id, workspace, session, pid, agent, parent, token, sealed, created_at, created_by, expires_at, ended_at, outcome)
    VALUES ('run_0a1b2c3d4e5f', 'team', 'ses_0a1b2c3d4e5f', 1, 'reader', '', '00ff', 'c2VhbGVk', 1790000000000, 'admin', 1890000000000, 0, '');
INSERT INTO sessions (workspace, id, agent, parent, depth, sealed, created_at, created_by, ended_at)
    VALUES ('team', 'ses_0a1b2c3d4e5f', 'reader', '', 0, 'c2VhbGVk', 1790000000000, 'admin', 0);
