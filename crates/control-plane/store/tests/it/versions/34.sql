INSERT INTO executor_workspaces (holder, executor, workspace, served_until)
    VALUES ('executor-0a1b', 'claude', 'team', 1790000000000);
INSERT INTO resting_sessions (workspace, session, run, sealed, due_at, tries)
    VALUES ('team', 'ses_0a1b2c3d4e5f', 'run_0a1b2c3d4e5f', 'c2VhbGVk', 1790000000000, 2);
