INSERT INTO env_bindings (workspace, scope, scope_id, name, secret, agent, created_at, updated_at, updated_by)
    VALUES ('team', 'agent', 'reader', 'GITHUB_TOKEN', 'TOKEN', 'reader', 1790000000000, 1790000000000, 'admin');
UPDATE runs SET agent_env = 'GITHUB_TOKEN' WHERE id = 'run_0a1b2c3d4e5f';
