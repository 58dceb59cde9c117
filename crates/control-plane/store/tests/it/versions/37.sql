INSERT INTO suspended_sessions (workspace, session, run, sealed, suspended_at, suspended_by)
    VALUES ('team', 'ses_0a1b2c3d4e5f', 'run_0a1b2c3d4e5f', 'c2VhbGVk', 1790000000000, 'admin');
