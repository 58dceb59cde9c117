UPDATE sessions SET agent_type = 'orchestrator', acted_at = 1790000000000
    WHERE workspace = 'team' AND id = 'ses_0a1b2c3d4e5f';
