INSERT INTO mcp_clients (id, workspace, principal, hash, agent, sealed, origins, session, run, created_at, created_by, expires_at, revoked_at)
    VALUES ('cli_00000000000000ee', 'team', 'prn_00000000000000dd', '00ff', 'reader', 'c2VhbGVk', 'agent-produced imported', 'ses_0a1b2c3d4e5f', 'run_0a1b2c3d4e5f', 1790000000000, 'ada', 1890000000000, 0);
INSERT INTO principals (id, kind, name, workspace, operator_since, created_at, created_by, disabled_at)
    VALUES ('prn_00000000000000dd', 'client', 'team/desktop', 'team', NULL, 1790000000000, 'ada', NULL);
